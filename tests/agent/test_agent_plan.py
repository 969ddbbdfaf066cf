"""Plan mode: an agent that only plans can change nothing."""

import pytest
from agent_recorders import Harness, TinyTool, ToldModel, scripted

from windlass.agent.prompt import system_prompt
from windlass.wire.model import FinishChunk, TextChunk


def tools() -> list[TinyTool]:
    return [
        TinyTool("view", lambda _: "seen", read_only=True),
        TinyTool("bash", lambda _: "done"),
        TinyTool("agent", lambda _: "started"),
    ]


@pytest.mark.parametrize(("plan", "offered"), [(True, ["view", "agent"]), (False, ["view", "bash", "agent"])])
async def test_only_tools_that_change_nothing_are_offered(plan: bool, offered: list[str]) -> None:
    """Otherwise a plan would be half done before anyone has seen it."""
    model = ToldModel(lambda request: [TextChunk("ok"), FinishChunk("end_turn")])
    await Harness(model, tools()).run(plan=plan)
    (request,) = model.requests
    assert [tool.name for tool in request.tools] == offered
    assert ("plan mode" in request.system) == plan and ("bash" in request.system) != plan


async def test_a_call_to_another_tool_is_answered_with_the_reason_and_not_run() -> None:
    """Otherwise a model that remembers a tool could use it, or would not know why it is gone."""
    there = tools()
    harness = Harness(scripted([{"tool": "bash"}, {"tool": "view"}], [{"say": "ok"}]), there)
    await harness.run(plan=True)
    refused, seen = harness.events.results()
    assert refused.is_error and "plan mode" in refused.content and there[1].planned == []
    assert seen.content == "seen"


async def test_what_changes_nothing_says_so_when_it_asks() -> None:
    """Otherwise turning plan mode on in the middle of a run could not tell a look from a change."""
    harness = Harness(scripted([{"tool": "view"}, {"tool": "bash"}], [{"say": "ok"}]), tools())
    await harness.run()
    assert [(ask.tool_name, ask.read_only) for ask in harness.events.asks] == [("view", True), ("bash", False)]


def test_the_prompt_without_a_plan_is_as_it_was() -> None:
    """Otherwise every cache would be lost for a mode that is off."""
    assert system_prompt("/w", ["ls"], False) == system_prompt("/w", ["ls"])
