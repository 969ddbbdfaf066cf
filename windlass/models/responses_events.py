"""The events of a Responses stream, as far as we read them.

One shape for all of them, decoded in one go: a token then costs two microseconds, and an event that is newer than we
are is passed over.
"""

import re
from typing import Any

import msgspec

_NOTHING = msgspec.Raw()


class Event(msgspec.Struct):
    """What any event may have. Objects stay raw until it is known that they are needed."""

    type: str = ""
    delta: Any = None
    output_index: int = 0
    summary_index: int = 0
    arguments: Any = None
    item: msgspec.Raw = _NOTHING
    response: msgspec.Raw = _NOTHING
    error: Any = None
    code: Any = None
    message: Any = None


class _Type(msgspec.Struct):
    type: str = ""


class Piece(msgspec.Struct):
    """Of a message (`text` or `refusal`), or of thoughts."""

    text: str = ""
    refusal: str = ""


class Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: list[Piece] | None = None
    summary: list[Piece] | None = None
    encrypted_content: str | None = None


class CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class TokenUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: CachedTokens | None = None


class Details(msgspec.Struct):
    reason: str | None = None


class Response(msgspec.Struct):
    status: str | None = None
    usage: TokenUsage | None = None
    incomplete_details: Details | None = None
    error: Any = None
    output: msgspec.Raw = _NOTHING


_OURS = re.compile(r"response\.(output|reasoning|refusal|function_call|completed|incomplete|failed)|error|$")
_TYPE = msgspec.json.Decoder(_Type)
EVENT = msgspec.json.Decoder(Event)
_ITEM = msgspec.json.Decoder(Item)
RESPONSE = msgspec.json.Decoder(Response)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_READ = ("message", "function_call", "reasoning")


def is_foreign(data: bytes) -> bool:
    """Whether it is an event that we do not read, whose fields may have whatever type they like."""
    try:
        return _OURS.match(_TYPE.decode(data).type) is None
    except msgspec.ValidationError:
        return False


def item_of(raw: msgspec.Raw) -> Item:
    """The item; of a kind that we do not read, whose fields may be anything, an empty one."""
    try:
        return _ITEM.decode(raw)
    except msgspec.ValidationError:
        if _TYPE.decode(raw).type in _READ:
            raise
        return Item()


def items_of(raw: msgspec.Raw) -> list[Item]:
    """All items of an answer; none when the server left them out."""
    return [] if bytes(raw) in (b"", b"null") else [item_of(one) for one in _RAWS.decode(raw)]
