"""What an agent asks of the sub-agents it may start, and what it is told: the port behind the `agent` tool.

The owner of a run answers (the engine, or the parent at the other end of a worker's link), never the executor itself:
limits, costs and cancels of a whole family are decided in one place.
"""

from typing import Literal

import msgspec


class StartAgent(msgspec.Struct, tag_field="action", tag="start", frozen=True):
    """Start a sub-agent in a session of its own. "" means: the role's, else the parent's."""

    prompt: str
    role: str = ""
    model: str = ""
    reasoning_effort: str = ""


class WaitForAgents(msgspec.Struct, tag_field="action", tag="wait", frozen=True):
    """Wait until all of these (or any of them) are not busy any more. No ids: those this run started.

    `report`: what came of them is also put into the conversation, as a steering message that is there before the reply.
    """

    ids: tuple[str, ...] = ()
    until: Literal["all", "any"] = "all"
    timeout_seconds: float = 0.0
    report: bool = False


class ListAgents(msgspec.Struct, tag_field="action", tag="list", frozen=True):
    pass


class MessageAgent(msgspec.Struct, tag_field="action", tag="message", frozen=True):
    """Put a message into the agent's mailbox: read at its next step, or when it runs again."""

    id: str
    text: str


class SteerAgent(msgspec.Struct, tag_field="action", tag="steer", frozen=True):
    """Fold a prompt into the agent's active run; an idle agent starts a run with it."""

    id: str
    text: str


class CancelAgent(msgspec.Struct, tag_field="action", tag="cancel", frozen=True):
    """Cancel everything the agent does, and what its own agents do."""

    id: str


AgentsRequest = StartAgent | WaitForAgents | ListAgents | MessageAgent | SteerAgent | CancelAgent


class AgentStatus(msgspec.Struct, omit_defaults=True, frozen=True):
    """A sub-agent as its parent sees it. `id` is its session; `text` its last answer; `branch` where its work is."""

    id: str
    role: str
    state: str
    title: str = ""
    text: str = ""
    error: str = ""
    branch: str = ""
    cost: float = 0.0


class AgentsReply(msgspec.Struct, omit_defaults=True, frozen=True):
    """`error` says why it was refused and what to do; then nothing was done."""

    agents: tuple[AgentStatus, ...] = ()
    error: str = ""
