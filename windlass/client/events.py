"""One event of a workspace's stream, as a client sees it."""

from typing import Any, NamedTuple

import msgspec

from windlass.client.errors import ProtocolError
from windlass.client.sse import ServerSentEvent
from windlass.wire.events import ConfigChanged, Hello, MessageDelta, Presence, Reset
from windlass.wire.mcp import McpState
from windlass.wire.messages import Message
from windlass.wire.permissions import By, PermissionNotification, PermissionRequest
from windlass.wire.questions import QuestionBatch, QuestionNotification
from windlass.wire.runs import AgentEvent, Run, RunComplete
from windlass.wire.sessions import FileVersion, Session

Decoded = (
    Message
    | MessageDelta
    | Session
    | Run
    | RunComplete
    | AgentEvent
    | PermissionRequest
    | PermissionNotification
    | QuestionBatch
    | QuestionNotification
    | FileVersion
    | ConfigChanged
    | McpState
    | Hello
    | Presence
    | Reset
)
_SHAPES: dict[str, type[Decoded]] = {
    "message": Message,
    "message_delta": MessageDelta,
    "session": Session,
    "run": Run,
    "run_complete": RunComplete,
    "agent_event": AgentEvent,
    "permission_request": PermissionRequest,
    "permission_notification": PermissionNotification,
    "question_batch_request": QuestionBatch,
    "question_batch_notification": QuestionNotification,
    "file": FileVersion,
    "config_changed": ConfigChanged,
    "mcp_event": McpState,
    "hello": Hello,
    "presence": Presence,
    "reset": Reset,
}


class EventId(NamedTuple):
    """The place of a fact in a log: `epoch.seq` on the wire. Only ids of one epoch can be compared."""

    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> "EventId":
        epoch, _, seq = text.rpartition(".")
        if not epoch or not (seq.isascii() and seq.isdigit()):
            raise ProtocolError(f"{text!r} is no event id; one looks like 9f86d081884c7d65.42.")
        return cls(epoch, int(seq))


class StreamEvent(msgspec.Struct, frozen=True):
    """`id` is there for facts and for nothing else. `payload` is as it came, also fields this version does not know."""

    kind: str
    change: str
    payload: dict[str, Any]
    id: EventId | None = None
    by: By | None = None
    time: str = ""

    @property
    def decoded(self) -> Decoded | None:
        """The thing itself, as the type that its kind has: what to `match` on.

        None for what was deleted (its id is in `payload`), for a kind this version does not know, and for a shape it
        does not understand: a client of yesterday goes on working with the server of tomorrow.
        """
        shape = _SHAPES.get(self.kind)
        if shape is None or self.change == "deleted":
            return None
        try:
            return msgspec.convert(self.payload, shape)
        except msgspec.ValidationError:
            return None

    @property
    def session_id(self) -> str:
        """The session the event is about, or "" when it is about the workspace."""
        field = "id" if self.kind == "session" else "session_id"
        value = self.payload.get(field, "")
        return value if isinstance(value, str) else ""

    def envelope(self) -> dict[str, Any]:
        """What stood on the wire, with the id in it."""
        envelope: dict[str, Any] = {"type": self.kind, "payload": {"type": self.change, "payload": self.payload}}
        if self.id is not None:
            envelope["id"] = str(self.id)
        if self.by is not None:
            envelope["by"] = msgspec.to_builtins(self.by)
        if self.time:
            envelope["time"] = self.time
        return envelope


class _Payload(msgspec.Struct):
    type: str = ""
    payload: Any = None


class _Envelope(msgspec.Struct):
    """Like the wire's envelope, but open: a change or kind of a later version must not break an old client."""

    type: str
    payload: _Payload
    by: By | None = None
    time: str = ""


_decoder = msgspec.json.Decoder(_Envelope)


def decode(event: ServerSentEvent) -> StreamEvent:
    try:
        envelope = _decoder.decode(event.data)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"An event on the stream is not understood ({error}).") from None
    payload = envelope.payload.payload
    return StreamEvent(
        kind=envelope.type,
        change=envelope.payload.type,
        # The facts of a deleted session keep their number and lose their body.
        payload=payload if isinstance(payload, dict) else {},
        id=None if event.id is None else EventId.parse(event.id),
        by=envelope.by,
        time=envelope.time,
    )
