"""`agent`: start sub-agents, wait for them, look at them, tell them something, stop them.

The tool only asks: who may start what is decided by the owner of the run (`wire/delegation.py`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, assert_never

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.text import shorten
from windlass.wire.delegation import (
    AgentsRequest,
    AgentStatus,
    CancelAgent,
    ListAgents,
    MessageAgent,
    OwnerReply,
    StartAgent,
    SteerAgent,
    WaitForAgents,
)
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolError, ToolOutput
from windlass.wire.worker import RoleSpec

_NOUNS = {
    "start": "an agent:",
    "wait": "for agents",
    "list": "agents",
    "message": "agent",
    "steer": "agent",
    "cancel": "agent",
}
_AT_WORK = ("accepted", "queued", "running", "waiting")  # states of an agent that has not ended its run
Delegate = Callable[[AgentsRequest], Awaitable[OwnerReply]]
Action = Literal["start", "wait", "list", "message", "steer", "cancel"]


class AgentArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Annotated[Action, Meta(description="What to do")]
    role: Annotated[str, Meta(description="start: the role of the new agent")] = ""
    prompt: Annotated[str, Meta(description="start: the whole task; it sees nothing of this conversation")] = ""
    model: Annotated[str, Meta(description="start: provider/model, if not the role's or your own")] = ""
    effort: Annotated[str, Meta(description="start: reasoning effort, if not the role's or your own")] = ""
    id: Annotated[str, Meta(description="message, steer, cancel: which agent")] = ""
    text: Annotated[str, Meta(description="message, steer: what to tell it")] = ""
    ids: Annotated[list[str], Meta(description="wait: which agents; none: all you started and did not hear of")] = []
    until: Annotated[Literal["all", "any"], Meta(description="wait: for all of them, or for the first")] = "all"
    timeout_seconds: Annotated[
        float, Meta(gt=0, le=limits.AGENT_WAIT_SECONDS, description="wait: at most this long")
    ] = limits.AGENT_WAIT_SECONDS


class Agent:
    name = "agent"
    schema = schema_of(AgentArguments)
    read_only = False

    def __init__(self, delegate: Delegate, roles: Sequence[RoleSpec]) -> None:
        self._delegate = delegate
        known = "; ".join(f"`{role.name}`: {role.description or 'as its instructions say'}" for role in roles)
        self.description = (
            "Let other agents do parts of the work, at the same time. `start` gives one a task and returns its id at "
            "once; start several, then `wait` for all of them or for any. What an agent answers last is its result. "
            "`list` shows your agents; `message` leaves one a message that it reads at its next step, or when it runs "
            "again; `steer` puts something into the work of a running agent now, and sets an idle one to work again; "
            "`cancel` stops one and everything it started. When you end your turn, agents that still work are waited "
            f"for, and you are told their results. Roles: {known}"
        )

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "AgentPlan":
        wanted = read_arguments(arguments, AgentArguments)
        request = _request(wanted)
        what = wanted.role or "general" if wanted.action == "start" else wanted.id or ", ".join(wanted.ids)
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action=wanted.action,
            description=f"{wanted.action.capitalize()} {_NOUNS[wanted.action]} {what}".strip(),
            path="",
            resource=f"{wanted.action} {what}".strip(),
            params=msgspec.to_builtins(request),
            confined=True,
        )
        return AgentPlan(ask, request, self._delegate)


@dataclass(frozen=True, slots=True)
class AgentPlan:
    ask: PermissionAsk
    request: AgentsRequest
    delegate: Delegate

    async def run(self) -> ToolOutput:
        reply = await self.delegate(self.request)
        if reply.error:
            raise ToolError(reply.error)
        return ToolOutput(
            told(reply.agents) or "You have no agents.",
            metadata=msgspec.json.encode([msgspec.structs.replace(agent, text="") for agent in reply.agents]).decode(),
            goes_on=any(agent.state in _AT_WORK for agent in reply.agents),
        )


def _request(wanted: AgentArguments) -> AgentsRequest:
    match wanted.action:
        case "start":
            return StartAgent(_given(wanted.prompt, "prompt"), wanted.role, wanted.model, wanted.effort)
        case "wait":
            return WaitForAgents(tuple(wanted.ids), wanted.until, wanted.timeout_seconds)
        case "list":
            return ListAgents()
        case "message":
            return MessageAgent(_given(wanted.id, "id"), _given(wanted.text, "text"))
        case "steer":
            return SteerAgent(_given(wanted.id, "id"), _given(wanted.text, "text"))
        case "cancel":
            return CancelAgent(_given(wanted.id, "id"))
        case _:
            assert_never(wanted.action)


def _given(value: str, name: str) -> str:
    if not value.strip():
        raise ToolError(f"`{name}` is missing.")
    return value


def told(agents: Sequence[AgentStatus]) -> str:
    """Agents as a model is told of them; of long answers less when there are many."""
    share = limits.TOOL_OUTPUT_CHARACTERS // max(1, len(agents)) - 500
    return "\n\n".join(_told(agent, max(share, 200)) for agent in agents)


def _told(agent: AgentStatus, limit: int) -> str:
    lines = [f"{agent.id} ({agent.role}): {agent.state}"]
    if agent.title:
        lines[0] += f" - {agent.title}"
    if agent.branch:
        lines.append(f"Its work is on the git branch {agent.branch}.")
    if agent.error:
        lines.append(f"Error: {agent.error}")
    if agent.text:
        lines.append(f"Its answer:\n{shorten(agent.text, limit)}")
    return "\n".join(lines)
