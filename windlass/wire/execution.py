"""The executor contract: `run(spec, events, steer, cancel) -> outcome`.

Any class with an async `run` of this shape executes runs: in this process, in a worker process or elsewhere. These are
Protocols, so an executor needs nothing of ours but the wire types.
"""

from collections.abc import Awaitable
from typing import Any, Literal, Protocol

import msgspec

from windlass.wire.delegation import OwnerReply, OwnerRequest
from windlass.wire.messages import Message
from windlass.wire.run_events import RunEvent
from windlass.wire.runs import Attachment, Purpose

COMMAND_MARK = "! "  # the prompt of a run whose purpose is "shell": this, and the command a person typed


class RunSpec(msgspec.Struct, frozen=True):
    """Everything an executor is told. `messages` is the conversation so far; its last one is the prompt.

    `roles` are those of the sessions from the root's first sub-agent down to this one: none for a top-level run.
    `plan`: only tools that change nothing. `wants_title`: the session has no name yet. `term_width`: columns of the
    terminal a command was typed in. `max_cost`: what the prompt lets the run cost; 0: what the settings say.
    """

    run_id: str
    session_id: str
    root_session_id: str
    workspace_path: str
    prompt: str
    messages: list[Message]
    attachments: list[Attachment] = []
    model: str = ""
    reasoning_effort: str = ""
    roles: tuple[str, ...] = ()
    purpose: Purpose = "prompt"
    plan: bool = False
    wants_title: bool = False
    term_width: int = 0
    max_cost: float = 0.0


class RunOutcome(msgspec.Struct, frozen=True):
    """How the executor sees the end. The owner of the run has the last word (a cancel it knows of wins).

    `interrupted`: what executed it was lost. `result` is the answer for those who saw no events; `transcript` is the
    executor's own record, opaque, kept with the run.
    """

    status: Literal["completed", "canceled", "failed", "interrupted"]
    error: str = ""
    result: str = ""
    transcript: Any = None


class PermissionAsk(msgspec.Struct, frozen=True):
    """What a tool is about to do, said before it does it.

    `resource` is the exact thing acted on (a path, a whole command line): a grant covers that and nothing wider.
    `read_only`: it changes nothing, so that it may also be done in plan mode.
    """

    tool_call_id: str
    tool_name: str
    action: str
    description: str
    path: str
    resource: str
    params: dict[str, Any] = {}
    confined: bool = False
    read_only: bool = False


Verdict = Literal["granted", "denied", "withdrawn", "expired"]


class SteerMessage(msgspec.Struct, frozen=True):
    run_id: str
    text: str
    message_id: str
    attachments: list[Attachment] = []


class Events(Protocol):
    """Where an executor's run events go. After a cancel nothing is taken any more."""

    def emit(self, event: RunEvent) -> None:
        """Hand over an event; returns at once. Events are taken in the order they were emitted."""

    def durable(self, event: RunEvent) -> Awaitable[None]:
        """Hand over an event, at once and in its order; await what is returned until the facts it made are on disk."""

    async def approve(self, ask: PermissionAsk) -> Verdict:
        """Ask the people (or the policy) and return what was decided. Anything but `granted` means no."""

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        """Ask the owner of the run for what only it can do: sub-agents, questions to people, tools of MCP servers.

        A refusal is a reply with an `error`. Cancelling the caller withdraws the request.
        """


class Steer(Protocol):
    """Messages that people sent into the run while it was going on."""

    def take(self) -> list[SteerMessage]:
        """What is waiting now, oldest first, each handed out once. Emit `SteerTaken` for each before the next await."""

    async def next(self) -> SteerMessage:
        """Wait for the next one."""

    async def withdrawn(self) -> str:
        """Wait until one that was handed out is cancelled: its `run_id`. For whoever passes messages on to another."""


class Cancel(Protocol):
    """A token that is set once when the run is to stop."""

    @property
    def requested(self) -> bool: ...

    async def wait(self) -> None:
        """Return when the run is to stop."""


class Executor(Protocol):
    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome: ...
