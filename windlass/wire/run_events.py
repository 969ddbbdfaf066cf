"""What an executor emits: one closed union. Only `engine/runner` turns these into facts.

The order of a message is: `MessageStart`, any number of `Delta` and `PartAdded`, one `MessageEnd`. A message whose
`MessageStart` already carries parts with a finish (a tool result) needs no end. The result of a tool that shows its
output while it works: `MessageStart` of role tool without parts, any number of `Delta` (part 0, field `content`), one
`ToolEnded`. A message started with `is_summary` stands, once it has ended well, for everything before it.
"""

import msgspec

from windlass.wire.messages import FinishReason, Part, Role, ToolResult
from windlass.wire.runs import Usage
from windlass.wire.sessions import Todo


class MessageStart(msgspec.Struct, tag_field="type", tag="message_start", frozen=True):
    message_id: str
    role: Role
    model: str = ""
    provider: str = ""
    parts: list[Part] = []
    is_summary: bool = False


class Delta(msgspec.Struct, tag_field="type", tag="delta", frozen=True):
    """Text gained by one field of one part. The first of a part names its type (and a tool call's id and name)."""

    message_id: str
    part: int
    field: str
    text: str
    part_type: str = ""
    id: str = ""
    name: str = ""


class PartAdded(msgspec.Struct, tag_field="type", tag="part", frozen=True):
    """A part that is whole at once; it goes to the end of the message."""

    message_id: str
    part: Part


class MessageEnd(msgspec.Struct, tag_field="type", tag="message_end", frozen=True):
    message_id: str
    reason: FinishReason
    message: str = ""
    details: str = ""


class ToolEnded(msgspec.Struct, tag_field="type", tag="tool_ended", frozen=True):
    """The result that was streamed is whole: it takes the place of everything the message held."""

    message_id: str
    result: ToolResult


class ResetMessage(msgspec.Struct, tag_field="type", tag="reset_message", frozen=True):
    """What was streamed of this message is void (a provider retry); it starts again from nothing."""

    message_id: str


class Step(msgspec.Struct, tag_field="type", tag="step", frozen=True):
    """A step begins: one model call and the tools it asks for."""

    number: int


class UsageGained(msgspec.Struct, tag_field="type", tag="usage", frozen=True):
    """Tokens and cost of one model call, to be added to the run's and the session's."""

    usage: Usage
    cost: float = 0.0


class FileWritten(msgspec.Struct, tag_field="type", tag="file_version", frozen=True):
    """`before` is None when there was no file, and unset when the executor does not know: then it cannot be undone.

    An encoding of "" is UTF-8 text; "base64" is for bytes that are not. A digest is the SHA-256 of the bytes, in hex,
    from whoever had them at hand outside the event loop; "" when nobody had.
    """

    path: str
    content: str
    before: str | msgspec.UnsetType | None = msgspec.UNSET
    encoding: str = ""
    before_encoding: str = ""
    digest: str = ""
    before_digest: str = ""


class TitleSuggested(msgspec.Struct, tag_field="type", tag="title", frozen=True):
    """What the session may be called, as long as nobody gave it a name."""

    title: str


class TodosChanged(msgspec.Struct, tag_field="type", tag="todos", frozen=True):
    todos: list[Todo]


class SteerTaken(msgspec.Struct, tag_field="type", tag="steer_taken", frozen=True):
    """The steering message of run `run_id` enters the conversation here."""

    run_id: str


RunEvent = (
    MessageStart
    | Delta
    | PartAdded
    | MessageEnd
    | ToolEnded
    | ResetMessage
    | Step
    | UsageGained
    | FileWritten
    | TitleSuggested
    | TodosChanged
    | SteerTaken
)
