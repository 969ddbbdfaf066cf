"""What a message is made of, in the words that all protocols share: texts, pictures, names and ids.

Each protocol has its own JSON for them; what is shown, what is only named and what is shortened is decided here, once.
"""

import base64
import binascii
import hashlib
import re

import msgspec

from windlass.wire.messages import (
    Binary,
    Finish,
    ImageUrl,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
    ToolResultData,
)

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARACTERS = 64  # OpenAI refuses longer names of functions


class Words(msgspec.Struct, frozen=True):
    text: str


class Picture(msgspec.Struct, frozen=True):
    """`url` is an address, or a data URL with the picture in it."""

    url: str
    detail: str = ""


Piece = Words | Picture


def user_pieces(parts: list[Part]) -> list[Piece]:
    """What a person said and attached, in order."""
    return [piece for part in parts if (piece := _user_piece(part)) is not None]


def result_words(result: ToolResultData) -> str:
    """What a tool said. That it failed is said in words: these protocols have no field for it."""
    return f"Error: {result.content}" if result.is_error else result.content


def result_picture(result: ToolResultData) -> Picture | None:
    """The picture that a tool gave back, if it gave one."""
    if not result.data or not result.mime_type.startswith("image/"):
        return None
    return Picture(data_url(result.mime_type, result.data))


def data_url(mime_type: str, data: str) -> str:
    return f"data:{mime_type};base64,{data}"


def tool_name(name: str) -> str:
    """A name that the provider takes back. Models make names up; one with a dot would spoil every later request."""
    return _NOT_IN_A_NAME.sub("_", name)[:_NAME_CHARACTERS] or "unknown"


def call_id(id: str, characters: int) -> str:
    """The id, or a short one made from it: a session may go on with a provider that refuses another's long ids."""
    return id if len(id) <= characters else f"call_{hashlib.sha256(id.encode()).hexdigest()[: characters - 5]}"


def foreign_call_id(id: str) -> str:
    """An id for a call that another provider made: Mistral takes nine letters or digits, and nothing else."""
    return base64.b32encode(hashlib.sha256(id.encode()).digest())[:9].decode()


def _user_piece(part: Part) -> Piece | None:
    match part:
        case Text():
            return Words(part.data.text)
        case ImageUrl():
            return Picture(part.data.url, part.data.detail)
        case Binary():
            return _attachment(part)
        case ShellCommand():
            ran = part.data
            return Words(f"I ran this command (exit code {ran.exit_code}):\n{ran.command}\n\n{ran.output}")
        case Reasoning() | ToolCall() | ToolResult() | Finish():
            return None


def _attachment(part: Binary) -> Piece:
    """An image as a data URL, text as text; of anything else only the name, so that the model knows it is there."""
    data = part.data
    if data.mime_type.startswith("image/"):
        return Picture(data_url(data.mime_type, data.data))
    try:
        text = base64.b64decode(data.data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return Words(f"[Attached file {data.path} ({data.mime_type}): not text and not an image, left out.]")
    return Words(f"Attached file {data.path}:\n{text}")
