"""Asking a provider which models it has: one bounded GET, which also shows whether its key and address are right.

Only `windlass models` and the doctor do this, never a server. There is no proxy, no redirect and no cookie: nobody but
the address that was given may see the key.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec

from windlass import __version__, limits
from windlass.models.anthropic import API_VERSION
from windlass.models.refusals import Refusals


class ListedModel(msgspec.Struct, frozen=True):
    """`context_window`: as the server says it, 0 if it does not; `owner`: in its words, which name the program."""

    id: str
    context_window: int = 0
    owner: str = ""


class Listing(msgspec.Struct, frozen=True):
    """What came of asking. `says` is a sentence for a person, without any key.

    `answers`: here is the list. `refused`: it does not take the key. `unreachable`: nobody is there. `other`: somebody
    is, but there is no list to be had. `in_json`: it speaks as an API does, and is not just any web server.
    """

    state: Literal["answers", "refused", "unreachable", "other"]
    says: str = ""
    models: tuple[ListedModel, ...] = ()
    in_json: bool = False


async def list_models(
    name: str, type: str, base_url: str, key: str, seconds: float = limits.MODEL_LIST_SECONDS
) -> Listing:
    """Ask a provider, in the words of its protocol. Nothing is raised: what went wrong is what it says."""
    if type == "anthropic":
        url = base_url.rstrip("/").removesuffix("/v1") + "/v1/models?limit=1000"
        headers = {"x-api-key": key, "anthropic-version": API_VERSION}
    else:
        url = base_url.rstrip("/") + "/models"
        headers = {"Authorization": f"Bearer {key}"}
    if not _is_plain(base_url):
        return Listing("other", f"providers.{name}.base_url may have a host, a port and a path, nothing else.")
    return await ask(url, headers if key else {}, Refusals(name, base_url, key), name, seconds)


async def ask(url: str, headers: dict[str, str], refusals: Refusals, name: str, seconds: float) -> Listing:
    """One GET. `name` is how people know the server; `refusals` keep its key out of what is said."""
    host = urlsplit(url).netloc
    if not all(text.isascii() and text.isprintable() for text in (url, *headers.values())):
        # A line break in a key or an address would begin a header, or a request, of its own.
        return Listing("other", f"The key or the address of {name} has characters that cannot be sent.")
    try:
        async with asyncio.timeout(seconds):
            status, answered, body = await _get(url, {**headers, "User-Agent": f"windlass/{__version__}"})
    except TimeoutError:
        return Listing("unreachable", f"{name} did not answer at {host} within {seconds:g} s.")
    except (aiohttp.ClientError, OSError) as error:
        why = refusals.wash(getattr(error, "strerror", None) or str(error)) or type(error).__name__
        return Listing("unreachable", f"{name} cannot be reached at {host} ({why}).")
    if status != 200:
        refusal = refusals.from_status(status, answered, body, "")
        if status == 404:
            return Listing("other", f"{name} has no list of models at {host} (404).")
        in_json = "json" in answered.get("content-type", "")
        return Listing("refused" if refusal.kind == "auth" else "other", refusal.message, in_json=in_json)
    entries = _entries(body)
    models = tuple(_models(entries or []))
    if entries is None or (entries and not models):
        return Listing("other", f"{name} answers at {host}, but not with a list of models.")
    return Listing("answers", f"{name} answers and has {len(models)} models.", models)


async def _get(url: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    jar = aiohttp.DummyCookieJar()
    async with (
        aiohttp.ClientSession(cookie_jar=jar, trust_env=False) as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limits.MODEL_LIST_BYTES:
                break  # what was cut off is no JSON any more, and is said to be no list
        return response.status, {name.lower(): value for name, value in response.headers.items()}, bytes(body)


def _entries(body: bytes) -> list[Any] | None:
    """The list in either of the usual shapes, OpenAI's (`data`) or Ollama's own (`models`); None if it is neither."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return None
    entries = decoded.get("data", decoded.get("models"))
    if entries is None and decoded.get("object") == "list":
        return []  # what Ollama says as long as it has no model
    return entries[: limits.MODEL_LIST_ENTRIES] if isinstance(entries, list) else None


def _models(entries: list[Any]) -> Iterator[ListedModel]:
    for entry in entries:
        id = (entry.get("id") or entry.get("name")) if isinstance(entry, dict) else None
        if isinstance(id, str) and 0 < len(id) <= limits.MODEL_NAME_CHARACTERS and id.isprintable():
            yield ListedModel(id.removeprefix("models/"), _context(entry), str(entry.get("owned_by") or ""))


def _context(entry: dict[str, Any]) -> int:
    """How much fits in, in the words of vLLM, of routers, and of llama.cpp."""
    meta = entry.get("meta")
    found = (
        entry.get("max_model_len"),
        entry.get("context_length"),
        meta.get("n_ctx") if isinstance(meta, dict) else None,
    )
    return next((tokens for tokens in found if isinstance(tokens, int) and 0 < tokens < 10**9), 0)


def _is_plain(base_url: str) -> bool:
    try:
        parts = urlsplit(base_url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False
