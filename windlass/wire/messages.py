"""Messages of a conversation and their parts, as they are stored, streamed and served.

A part is `{"type": ..., "data": {...}}`; the type is the tag that decides the shape of the data.
"""

from typing import Any, Literal

import msgspec

Role = Literal["user", "assistant", "tool", "system"]
FinishReason = Literal["end_turn", "max_tokens", "tool_use", "canceled", "error", "content_filter", "unknown"]


class TextData(msgspec.Struct):
    text: str = ""


class ReasoningData(msgspec.Struct):
    thinking: str = ""
    signature: str = ""
    started_at: int = 0
    finished_at: int = 0


class ToolCallData(msgspec.Struct, omit_defaults=True):
    """`input` is a JSON text, exactly as the model wrote it."""

    id: str
    name: str
    input: str
    finished: bool = False


class ToolResultData(msgspec.Struct, omit_defaults=True):
    """`unfinished`: the tool is still at work, and `content` is what it has shown so far. Never so in a fact."""

    tool_call_id: str
    name: str
    content: str
    metadata: str
    is_error: bool
    data: str = ""
    mime_type: str = ""
    unfinished: bool = False


class FinishData(msgspec.Struct, omit_defaults=True):
    reason: FinishReason
    time: int
    message: str = ""
    details: str = ""


class ImageUrlData(msgspec.Struct, omit_defaults=True):
    url: str
    detail: str = ""


class BinaryData(msgspec.Struct):
    """The capitalised keys are what existing clients of this API family speak."""

    path: str = msgspec.field(name="Path")
    mime_type: str = msgspec.field(name="MIMEType")
    data: str = msgspec.field(name="Data")


class ShellCommandData(msgspec.Struct):
    command: str
    output: str
    exit_code: int


class Text(msgspec.Struct, tag_field="type", tag="text"):
    data: TextData


class Reasoning(msgspec.Struct, tag_field="type", tag="reasoning"):
    data: ReasoningData


class ToolCall(msgspec.Struct, tag_field="type", tag="tool_call"):
    data: ToolCallData


class ToolResult(msgspec.Struct, tag_field="type", tag="tool_result"):
    data: ToolResultData


class Finish(msgspec.Struct, tag_field="type", tag="finish"):
    data: FinishData


class ImageUrl(msgspec.Struct, tag_field="type", tag="image_url"):
    data: ImageUrlData


class Binary(msgspec.Struct, tag_field="type", tag="binary"):
    data: BinaryData


class ShellCommand(msgspec.Struct, tag_field="type", tag="shell_command"):
    data: ShellCommandData


Part = Text | Reasoning | ToolCall | ToolResult | Finish | ImageUrl | Binary | ShellCommand


class Message(msgspec.Struct, omit_defaults=True):
    id: str
    role: Role
    session_id: str
    parts: list[Part]
    model: str
    provider: str
    created_at: int
    updated_at: int
    is_summary_message: bool = False

    @property
    def finish(self) -> FinishData | None:
        """How the message ended, or None while it is still being written."""
        for part in reversed(self.parts):
            if isinstance(part, Finish):
                return part.data
        return None

    @property
    def is_open(self) -> bool:
        """Whether it is still being written: an answer without its end, a result of a tool that is still at work."""
        if self.role == "tool":
            return not self.parts or any(isinstance(part, ToolResult) and part.data.unfinished for part in self.parts)
        return self.role == "assistant" and self.finish is None

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.data.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> list[ToolCallData]:
        return [part.data for part in self.parts if isinstance(part, ToolCall)]


def text_message(**fields: Any) -> Message:
    """A message of one text part; `text` is the keyword, the rest are the message's fields."""
    text = fields.pop("text")
    return Message(parts=[Text(TextData(text))], **fields)


class MessagePrivate(msgspec.Struct, frozen=True):
    """Where a message stands in its session: ordered by its run's accept number, then by its place in the run."""

    number: int
    index: int
