"""What travels on the event stream: envelopes, kinds, and the events that are not facts."""

from typing import Any, Literal

import msgspec

from windlass.wire.permissions import By, PermissionRequest
from windlass.wire.questions import QuestionBatch
from windlass.wire.runs import Run

Change = Literal["created", "updated", "deleted"]
FactKind = Literal[
    "message",
    "session",
    "run",
    "run_complete",
    "agent_event",
    "permission_request",
    "permission_notification",
    "question_batch_request",
    "question_batch_notification",
    "file",
    "config_changed",
    "mcp_event",
    "lsp_event",
    "skills_event",
]


class Fact(msgspec.Struct, frozen=True):
    """Something that happened, before it has a number: the journal numbers, stores and then publishes it.

    `body` is what readers see; `private` is kept in the stored row and never sent. `key` names the thing whose state
    the body is, so that the newest fact of a key is that thing's state; "" for a pure event.
    """

    kind: FactKind
    change: Change
    body: Any
    by: By
    session: str = ""
    run: str = ""
    key: str = ""
    private: Any = None


class Payload(msgspec.Struct):
    type: Change
    payload: dict[str, Any]


class Envelope(msgspec.Struct, omit_defaults=True):
    """One `data:` line. `by` and `time` are there for facts."""

    type: str
    payload: Payload
    by: By | None = None
    time: str = ""


class Hello(msgspec.Struct):
    epoch: str
    head: int
    floor: int
    runs: list[Run]
    permissions: list[PermissionRequest]
    questions: list[QuestionBatch]


class MessageDelta(msgspec.Struct, omit_defaults=True):
    """`at` is the offset in code points the text goes to. At beyond what a client has: a hole; below: a repeat."""

    message_id: str
    session_id: str
    part: int
    field: str
    at: int
    text: str
    type: str = ""
    id: str = ""
    name: str = ""


class Presence(msgspec.Struct):
    session_id: str
    attached_clients: int


class Reset(msgspec.Struct):
    reason: str
    epoch: str
    head: int


class ConfigChanged(msgspec.Struct):
    workspace_id: str
