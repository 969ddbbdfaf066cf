"""The worker link: JSON text messages over a WebSocket, one object each, tagged by `kind`.

Two dialects on one port. A peer that offers the subprotocol `windlass.1` speaks all of this; one that does not speaks
*plain* frames: `run`, `cancel`, `message`, `approval_reply` to the child, `event`, `approval_request`, `terminal` back,
with the fields named "plain" below and nothing else. Unknown fields are ignored by both.
"""

from typing import Any, Literal

import msgspec

from windlass.wire.delegation import OwnerReply, OwnerRequest
from windlass.wire.execution import SteerMessage, Verdict
from windlass.wire.run_events import RunEvent
from windlass.wire.runs import Attachment, Purpose

SUBPROTOCOL = "windlass.1"
VERSION = 1
TerminalStatus = Literal["completed", "error", "cancelled"]


class Frame(msgspec.Struct, tag_field="kind", omit_defaults=True, frozen=True):
    """One message on a link."""


class OfRun(Frame, frozen=True, kw_only=True):
    """A frame that belongs to a run (I21). Plain peers have one run at a time and name none."""

    run_id: str = ""
    attempt: int = 0


# -- both ways, windlass.1 ---------------------------------------------------------------------------------------------


class Hello(Frame, tag="hello", frozen=True, omit_defaults=False):
    """The first frame of both ends. Its fields are always there: a peer need not know our defaults."""

    version: int = VERSION
    capabilities: tuple[str, ...] = ()


class ErrorFrame(Frame, tag="error", frozen=True):
    """What came before could not be understood, and nothing was done."""

    reason: str


# -- parent to child ---------------------------------------------------------------------------------------------------


class RunFrame(OfRun, tag="run", frozen=True, kw_only=True):
    """Start a run. Plain: `assignment`, `reasoning_effort`, `messages` (the conversation before it, opaque to us).

    Under windlass.1 the rest of the RunSpec rides along, and `messages` are ours, the last one being the prompt.
    """

    assignment: str
    reasoning_effort: str | None = None
    messages: list[Any] | None = None
    session_id: str = ""
    root_session_id: str = ""
    workspace_path: str = ""
    model: str = ""
    attachments: list[Attachment] = []
    steering: list[SteerMessage] = []  # what waits for its first step boundary
    purpose: Purpose = "prompt"
    plan: bool = False
    wants_title: bool = False
    max_cost: float = 0.0


class CancelFrame(OfRun, tag="cancel", frozen=True, kw_only=True):
    """Stop the active run. With none active it does nothing."""


class MessageFrame(OfRun, tag="message", frozen=True, kw_only=True):
    """Steering for the active run. Plain: `text`. `id` comes back in `steer_taken` or in `undelivered`."""

    text: str
    id: str = ""
    message_id: str = ""
    attachments: list[Attachment] = []


class MessageWithdrawn(OfRun, tag="message_withdrawn", frozen=True, kw_only=True):
    """That steering message was cancelled; if the executor has not taken it yet, it must not."""

    id: str


class ApprovalReply(OfRun, tag="approval_reply", frozen=True, kw_only=True):
    """Plain: `id`, `approved`. `verdict` tells a model denied from withdrawn and expired."""

    id: str
    approved: bool
    verdict: Verdict | None = None


class AckFrame(OfRun, tag="ack", frozen=True, kw_only=True):
    """The parent has committed every event of the run up to `seq`."""

    seq: int


class AgentsReplyFrame(OfRun, tag="agents_reply", frozen=True, kw_only=True):
    id: str
    reply: OwnerReply


# -- child to parent ---------------------------------------------------------------------------------------------------


class ApprovalBody(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a tool of the child is about to do. Plain: the first four."""

    tool_name: str
    permission_type: str
    resource: str
    question: str
    tool_call_id: str = ""
    params: dict[str, Any] = {}
    path: str = ""
    confined: bool = False
    read_only: bool = False


class ApprovalRequest(OfRun, tag="approval_request", frozen=True, kw_only=True):
    """`id` is `sa-` and a random UUID."""

    id: str
    body: ApprovalBody


class ApprovalWithdrawn(OfRun, tag="approval_withdrawn", frozen=True, kw_only=True):
    """Nobody waits for that answer any more."""

    id: str


class EventFrame(OfRun, tag="event", frozen=True, kw_only=True):
    """A run event. `seq` is dense from 1 within the run; `durable`: the executor waits for its ack."""

    event: RunEvent
    seq: int = 0
    durable: bool = False


class PlainEvent(Frame, tag="event", frozen=True, kw_only=True):
    """`{"type": "token", "content": ...}`, `{"type": "complete"}`, or anything: opaque to the link."""

    event: dict[str, Any]


class AgentsRequestFrame(OfRun, tag="agents_request", frozen=True, kw_only=True):
    """The executor wants something of its sub-agents; the parent decides."""

    id: str
    request: OwnerRequest


class AgentsWithdrawn(OfRun, tag="agents_withdrawn", frozen=True, kw_only=True):
    """Nobody waits for that reply any more."""

    id: str


class Undelivered(OfRun, tag="undelivered", frozen=True, kw_only=True):
    """That steering message missed its run: nobody read it."""

    id: str


class TerminalFrame(OfRun, tag="terminal", frozen=True, kw_only=True):
    """How a run ended, after all of its events (I20). `transcript` is the executor's own, kept with the run."""

    status: TerminalStatus
    result: str | None = None
    error: str | None = None
    transcript: Any = None


PlainParentFrame = RunFrame | CancelFrame | MessageFrame | ApprovalReply
ParentFrame = (
    Hello
    | ErrorFrame
    | RunFrame
    | CancelFrame
    | MessageFrame
    | MessageWithdrawn
    | ApprovalReply
    | AckFrame
    | AgentsReplyFrame
)
PlainChildFrame = PlainEvent | ApprovalRequest | TerminalFrame
ChildFrame = (
    Hello
    | ErrorFrame
    | EventFrame
    | ApprovalRequest
    | ApprovalWithdrawn
    | AgentsRequestFrame
    | AgentsWithdrawn
    | Undelivered
    | TerminalFrame
)
