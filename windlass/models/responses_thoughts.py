"""Thoughts on OpenAI's Responses protocol: which models have them, and how they go back to the model that had them.

The provider keeps nothing for us (`store` is false). What it wants back is put into the `signature` of a reasoning
part, as a JSON text that only this file reads: the encrypted thoughts, or, from servers that do not encrypt, a note
that the text itself is what they want.
"""

import re
from typing import Any

import msgspec

from windlass.wire.messages import ReasoningData

# By the beginning of a model's name, after a router's "vendor/" and the "ft:" of fine-tuned ones. A model that is in
# neither table is taken for one that thinks when an effort is set, and for one that does not otherwise.
_THINKS = re.compile(r"(?:.*/|ft:)?(?:o\d|gpt-[5-9]|gpt-\d\d|codex-)")
_DOES_NOT_THINK = re.compile(r"(?:.*/|ft:)?(?:gpt-[34]|chatgpt-|gpt-[5-9][\d.]*-chat)")
# These label what they say between calls as commentary and the rest as the answer, and want the labels back.
_HAS_PHASES = re.compile(r"(?:.*/|ft:)?gpt-(?:5\.3-codex|5\.[4-9]|5\.\d\d|[6-9]|\d\d)")


class _Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    encrypted_content: str = ""
    id: str = ""
    is_plain: bool = False


_DECODER = msgspec.json.Decoder(_Signature)


def thinks(model: str, effort: str) -> bool:
    """Whether to ask for thoughts. Models that have none refuse a request that does."""
    return _DOES_NOT_THINK.match(model) is None and (bool(effort) or _THINKS.match(model) is not None)


def has_phases(model: str) -> bool:
    return _HAS_PHASES.match(model) is not None and _DOES_NOT_THINK.match(model) is None


def signature_of(id: str, encrypted_content: str, is_plain: bool) -> str:
    """What to keep of thoughts that are complete; nothing when the provider could do nothing with it."""
    if not encrypted_content and not is_plain:
        return ""
    return msgspec.json.encode(_Signature(encrypted_content, id, is_plain and not encrypted_content)).decode()


def thoughts_item(data: ReasoningData) -> dict[str, Any] | None:
    """The thoughts as an item of the next request; None when they are not complete, or another protocol's."""
    try:
        signature = _DECODER.decode(data.signature)
    except (msgspec.DecodeError, RecursionError):
        return None
    if signature.encrypted_content:
        # Without its id: by an id the provider looks for what it has stored, which is nothing, and refuses.
        summary = [{"type": "summary_text", "text": data.thinking}] if data.thinking else []
        return {"type": "reasoning", "summary": summary, "encrypted_content": signature.encrypted_content}
    if not signature.is_plain:
        return None
    content = [{"type": "reasoning_text", "text": data.thinking}]
    return {"type": "reasoning", "id": signature.id, "summary": [], "content": content}
