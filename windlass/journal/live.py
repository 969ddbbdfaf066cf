"""Messages that are being written: their text so far, as staged by the run and as published to readers.

A fact of an unfinished message starts a new LiveMessage; deltas add to it; the fact that ends the message holds all of
it. What readers are shown is only what was published: a prefix of each field.
"""

import itertools

import msgspec

from windlass.journal.encoding import plain_event
from windlass.wire.messages import (
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)

_generations = itertools.count()
STREAMED_FIELD = {"text": "text", "reasoning": "thinking", "tool_call": "input", "tool_result": "content"}


class _LivePart:
    """One part: whole from the fact it came with, or one streamed field that grows."""

    __slots__ = ("chunks", "length", "part", "published", "type")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.type = str(part.__struct_config__.tag)
        text = _streamed(part)
        self.chunks = [text]
        self.length = len(text)
        self.published = self.length

    def add(self, text: str) -> None:
        self.chunks.append(text)
        self.length += len(text)

    def text(self) -> str:
        if len(self.chunks) > 1:
            self.chunks = ["".join(self.chunks)]
        return self.chunks[0]

    def whole(self, upto: int) -> Part:
        text = self.text()
        return _with_streamed(self.part, text if upto >= self.length else text[:upto])


def new_part(part_type: str, id: str, name: str) -> Part:
    """An empty part of a type that streams."""
    match part_type:
        case "text":
            return Text(TextData())
        case "reasoning":
            return Reasoning(ReasoningData())
        case "tool_call":
            return ToolCall(ToolCallData(id=id, name=name, input=""))
        case "tool_result":
            return ToolResult(ToolResultData(id, name, content="", metadata="", is_error=False, unfinished=True))
        case _:
            raise ValueError(f"a part of type {part_type!r} cannot be streamed; emit it whole")


def _streamed(part: Part) -> str:
    match part:
        case Text():
            return part.data.text
        case Reasoning():
            return part.data.thinking
        case ToolCall():
            return part.data.input
        case ToolResult():
            return part.data.content
        case _:
            return ""


def _with_streamed(part: Part, text: str) -> Part:
    match part:
        case Text():
            return Text(TextData(text))
        case Reasoning():
            return Reasoning(msgspec.structs.replace(part.data, thinking=text))
        case ToolCall():
            return ToolCall(msgspec.structs.replace(part.data, input=text))
        case ToolResult():
            return ToolResult(msgspec.structs.replace(part.data, content=text))
        case _:
            return part


class LiveMessage:
    """One unfinished message. `version` counts what was published, so that readers share one encoding of it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._parts = [_LivePart(part) for part in message.parts]
        self._published_parts = len(self._parts)
        self.size = sum(part.length for part in self._parts)  # of the streamed text
        self.version = 0
        self.generation = next(_generations)
        self.checkpointed = 0
        self._encoded: tuple[int, bytes] = (-1, b"")

    @property
    def stamp(self) -> tuple[int, int]:
        """Which text this is: a message that started again has other text under the same version."""
        return self.generation, self.version

    def ensure_part(self, index: int, part_type: str, id: str = "", name: str = "") -> bool:
        """Make the part at `index` if it is the next one; True when it is new. Raises ValueError for a hole."""
        if index < len(self._parts):
            if self.part_type(index) not in STREAMED_FIELD:
                raise ValueError(f"part {index} is of type {self.part_type(index)!r}, which cannot be streamed")
            return False
        if index > len(self._parts):
            raise ValueError(f"part {index} of a message that has {len(self._parts)} parts")
        is_tool = self.message.role == "tool"
        if (part_type == "tool_result") != is_tool or (is_tool and index > 0):
            # A result in an answer, or two in one message, is nothing that a model could be sent.
            raise ValueError(f"a part of type {part_type!r} in a message of the role {self.message.role}")
        self._parts.append(_LivePart(new_part(part_type, id, name)))
        return True

    def sign(self, index: int, signature: str) -> None:
        live = self._parts[index] if index < len(self._parts) else None
        if live is None or not isinstance(live.part, Reasoning):
            raise ValueError(f"part {index} is no reasoning that could be signed")
        live.part = Reasoning(msgspec.structs.replace(live.part.data, signature=live.part.data.signature + signature))

    def part_type(self, index: int) -> str:
        return self._parts[index].type

    def add(self, index: int, text: str) -> None:
        self._parts[index].add(text)
        self.size += len(text)

    def publish(self, index: int, length: int) -> int:
        """`length` more code points of the part are visible now; returns the offset they start at."""
        part = self._parts[index]
        at = part.published
        part.published += length
        self._published_parts = max(self._published_parts, index + 1)
        self.version += 1
        return at

    def staged(self) -> Message:
        """Everything the run has said so far."""
        return self._with([part.whole(part.length) for part in self._parts])

    def published(self) -> Message:
        """Everything readers were shown so far."""
        return self._with([part.whole(part.published) for part in self._parts[: self._published_parts]])

    def _with(self, parts: list[Part]) -> Message:
        return msgspec.structs.replace(self.message, parts=parts)

    def encoded(self) -> bytes:
        """The whole message as an event without id; made once per version, whoever asks."""
        if self._encoded[0] != self.version:
            self._encoded = (self.version, plain_event("message", "updated", self.published()))
        return self._encoded[1]
