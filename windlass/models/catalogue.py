"""The catalogue: what is known of a model by its name, and what is used when nothing is.

A name is looked up in this order; the first that is found counts:

1. as it is;
2. without the vendor that a router puts before it (`anthropic/claude-opus-5.5`, `models/gemini-2.5-pro`);
3. without the tag of a local server (`qwen3-coder:30b`), or without a date or the like at its end
   (`claude-haiku-4-5-20251001`, `gpt-4.1-2025-04-14`, `mistral-large-4-latest`);
4. by the longest family that it begins with (`qwen3-coder` for `Qwen3-Coder-30B-A3B-Instruct-GGUF`).

Anything else at the end of a name makes another model: `gpt-5.4-nano` is not `gpt-5.4`.
"""

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from windlass import limits
from windlass.models.catalogue_table import TABLE, TABLE_DATE
from windlass.models.known_model import KnownModel, ModelProfile, PriceList
from windlass.models.responses_thoughts import thinks

__all__ = ["TABLE_DATE", "KnownModel", "ModelProfile", "is_loopback", "look_up", "models_of", "profile"]

_BY_ID = {model.id: model for model in TABLE if not model.is_family}
_FAMILIES = sorted((model for model in TABLE if model.is_family), key=lambda model: -len(model.id))
_ENDING = re.compile(r"(?:-(?:\d{4}-\d{2}-\d{2}|\d{4,8}|latest|preview|exp))+$")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")


def look_up(name: str) -> KnownModel | None:
    """What is known of the model of this name, by the rule above."""
    plain = name.lower().rpartition("/")[2]
    if plain.startswith("claude"):
        plain = plain.replace(".", "-")  # routers write the version with a point, the maker does not
    untagged = plain.partition(":")[0]
    for candidate in (name, plain, untagged, _ENDING.sub("", untagged)):
        if candidate in _BY_ID:
            return _BY_ID[candidate]
    return next((family for family in _FAMILIES if _begins_with(plain, family.id)), None)


def models_of(provider: str) -> list[KnownModel]:
    """The models of a well-known provider, newest first."""
    return [model for model in TABLE if provider and model.provider == provider]


def profile(name: str, base_url: str = "", said: dict[str, Any] | None = None) -> ModelProfile:
    """What is used for a model. `said` is what the user's config says of it, and wins field by field.

    `base_url` is where it is asked: an open model on this very machine costs nothing.
    """
    said = said or {}
    known = look_up(name)
    context = said.get("context_window") or (known and known.context_window) or limits.UNKNOWN_CONTEXT_TOKENS
    prices = _prices(known, name, base_url)
    made = ModelProfile(
        id=name,
        name=name,
        context_window=context,
        default_max_tokens=_answer_tokens(known, context),
        input_price=prices.input if prices else 0.0,
        output_price=prices.output if prices else 0.0,
        cache_read_price=(prices and prices.cache_read) or 0.0,
        cache_write_price=(prices and prices.cache_write) or 0.0,
        images=known.images if known else True,
        reasoning=_reasons(known, name),
        max_output=known.max_output if known else 0,
        dearer_above=known.dearer_above if known and prices else 0,
        is_known=known is not None,
        has_prices=prices is not None or "input_price" in said or "output_price" in said,
    )
    return msgspec.structs.replace(made, **said)


def is_loopback(base_url: str) -> bool:
    """Whether this address is on the machine itself."""
    try:
        return _LOOPBACK.fullmatch(urlsplit(base_url).hostname or "") is not None
    except ValueError:
        return False


def _answer_tokens(known: KnownModel | None, context: int) -> int:
    """How much to ask for in one answer. It is kept free of the context window, so it must be a small part of it."""
    most = (
        min(known.max_output, limits.MODEL_OUTPUT_TOKENS)
        if known and known.max_output
        else limits.UNKNOWN_OUTPUT_TOKENS
    )
    return max(1, min(most, context // 4))


def _prices(known: KnownModel | None, name: str, base_url: str) -> PriceList | None:
    if known is None or ":" in name or (known.open_weights and is_loopback(base_url)):
        # A tag is a local server's, or a router's name for another offer at another price (`:free`).
        return None
    return known.prices


def _reasons(known: KnownModel | None, name: str) -> bool:
    if known is not None and known.reasoning is not None:
        return known.reasoning
    return thinks(name.lower(), "")


def _begins_with(name: str, family: str) -> bool:
    return name == family or name.startswith((f"{family}-", f"{family}:", f"{family}_", f"{family}@"))
