"""The `agent` tool: what a model may ask for, what people are shown, and what the model is told."""

from typing import Any

import msgspec
import pytest

from windlass.tools.agent import Agent
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
from windlass.wire.tools import ToolError
from windlass.wire.worker import RoleSpec

ROLES = (RoleSpec("explore", "Looks around."), RoleSpec("writer"))


class Owner:
    """The owner of a run, as far as this tool sees it: it keeps what it was asked and answers as it was told."""

    def __init__(self, *agents: AgentStatus, error: str = "") -> None:
        self.asked: list[AgentsRequest] = []
        self._reply = OwnerReply(agents, error)

    async def delegate(self, request: AgentsRequest) -> OwnerReply:
        self.asked.append(request)
        return self._reply


@pytest.mark.parametrize(
    ("arguments", "request_"),
    [
        ({"action": "start", "role": "explore", "prompt": "Look"}, StartAgent("Look", "explore")),
        (
            {"action": "start", "prompt": "Look", "model": "a/b", "effort": "high"},
            StartAgent("Look", "", "a/b", "high"),
        ),
        ({"action": "wait"}, WaitForAgents((), "all", 3600.0)),
        (
            {"action": "wait", "ids": ["ses_1"], "until": "any", "timeout_seconds": 5},
            WaitForAgents(("ses_1",), "any", 5.0),
        ),
        ({"action": "list"}, ListAgents()),
        ({"action": "message", "id": "ses_1", "text": "Hi"}, MessageAgent("ses_1", "Hi")),
        ({"action": "steer", "id": "ses_1", "text": "Left"}, SteerAgent("ses_1", "Left")),
        ({"action": "cancel", "id": "ses_1"}, CancelAgent("ses_1")),
    ],
)
async def test_what_the_model_writes_is_what_the_owner_is_asked(
    arguments: dict[str, Any], request_: AgentsRequest
) -> None:
    """B72: an argument that is lost on the way starts another agent than was approved."""
    owner = Owner(AgentStatus("ses_1", "explore", "running"))
    plan = Agent(owner.delegate, ROLES).plan(arguments, "call")
    await plan.run()
    assert owner.asked == [request_]
    assert plan.ask.params == msgspec.to_builtins(request_)


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({"action": "start"}, "prompt"),
        ({"action": "message", "id": "x"}, "text"),
        ({"action": "steer", "text": "x"}, "id"),
        ({"action": "cancel"}, "id"),
        ({"action": "dance"}, "action"),
    ],
)
def test_what_is_missing_is_named(arguments: dict[str, Any], missing: str) -> None:
    """The model can only do better if it is told what."""
    with pytest.raises(ToolError, match=missing):
        Agent(Owner().delegate, ROLES).plan(arguments, "call")


async def test_a_refusal_is_an_error_for_the_model() -> None:
    """A31: told as a success, the model would wait for an agent that does not exist."""
    plan = Agent(Owner(error="8 agents are at work.").delegate, ROLES).plan({"action": "start", "prompt": "x"}, "call")
    with pytest.raises(ToolError, match="8 agents are at work"):
        await plan.run()


async def test_the_model_is_told_state_answer_branch_and_error() -> None:
    """B72: the branch above all: without it the work of an agent in a worktree is lost."""
    done = AgentStatus("ses_1", "writer", "completed", "writer: x", "All done.", "", "windlass/ses_1")
    failed = AgentStatus("ses_2", "explore", "failed", error="The model is not there.")
    output = await Agent(Owner(done, failed).delegate, ROLES).plan({"action": "wait"}, "call").run()
    for words in ("ses_1 (writer): completed", "All done.", "branch windlass/ses_1", "ses_2", "Error: The model is"):
        assert words in output.content


async def test_long_answers_of_many_agents_fit_together() -> None:
    """One of them must not push the others out of what the model sees."""
    agents = [AgentStatus(f"ses_{number}", "explore", "completed", text="x" * 30_000) for number in range(8)]
    output = await Agent(Owner(*agents).delegate, ROLES).plan({"action": "wait"}, "call").run()
    assert len(output.content) < 32_000
    assert all(f"ses_{number}" in output.content for number in range(8))


def test_roles_are_described_to_the_model() -> None:
    """It chooses by what it is told of them."""
    description = Agent(Owner().delegate, ROLES).description
    assert "`explore`: Looks around." in description and "`writer`" in description
