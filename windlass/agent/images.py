"""A conversation for a model that cannot see: each picture becomes a note that says so."""

from collections.abc import Sequence

import msgspec

from windlass.wire.messages import Binary, ImageUrl, Message, Part, Text, TextData, ToolResult

_NOTE = "[A picture{name} was left out here: this model cannot see pictures.]"


def without_images(messages: Sequence[Message]) -> list[Message]:
    """The same conversation without pictures, in prompts and in what tools gave back. Each message by itself."""
    return [_blind(message) if any(map(is_image, message.parts)) else message for message in messages]


def is_image(part: Part) -> bool:
    match part:
        case ImageUrl():
            return True
        case Binary():
            return part.data.mime_type.startswith("image/")
        case ToolResult():
            return bool(part.data.data)
        case _:
            return False


def _blind(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=[_described(part) for part in message.parts])


def _described(part: Part) -> Part:
    if not is_image(part):
        return part
    match part:
        case ToolResult():
            told = "\n\n".join(text for text in (part.data.content.strip(), _NOTE.format(name="")) if text)
            return ToolResult(msgspec.structs.replace(part.data, content=told, data="", mime_type=""))
        case Binary():
            return Text(TextData(_NOTE.format(name=f" ({part.data.path})" if part.data.path else "")))
        case _:
            return Text(TextData(_NOTE.format(name="")))
