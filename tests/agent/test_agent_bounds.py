"""The bounds of a run: tokens, cost, time, and going in circles. Each says why, and what a person can do."""

import asyncio
from itertools import cycle
from typing import Any

import pytest
from agent_recorders import Harness, TinyTool, ToldModel, scripted

from windlass import limits
from windlass.agent.budget import Budget
from windlass.agent.giving_up import GaveUp
from windlass.agent.settings import Prices
from windlass.wire.execution import RunOutcome
from windlass.wire.model import Chunk, FinishChunk, ModelRequest, Take, TextChunk, ToolCallChunk, UsageChunk
from windlass.wire.run_events import MessageEnd, UsageGained
from windlass.wire.runs import Usage
from windlass.wire.tools import ToolOutput

STEP: list[Chunk] = [ToolCallChunk(0, "{}", "c", "count"), UsageChunk(Usage(90, 10, 50, 20)), FinishChunk("tool_use")]


def counter(**options: Any) -> TinyTool:
    numbers = iter(range(1_000))
    return TinyTool("count", lambda _: next(numbers), **options)


@pytest.mark.parametrize(
    ("bound", "said"),
    [({"max_tokens": 250}, "300 tokens, and may use 250"), ({"max_cost": 0.0002}, "may cost 0.0002")],
)
async def test_a_run_that_used_up_its_budget_ends_with_a_reason(bound: dict[str, Any], said: str) -> None:
    """Otherwise an agent that was left alone would go on until the money is gone."""
    model = ToldModel(lambda request: STEP)
    harness = Harness(model, [counter()], prices=Prices(1, 1, 1, 1), **bound)
    outcome = await harness.run()
    assert outcome.status == "failed" and said in outcome.error and "[agent]" in outcome.error
    assert len(model.requests) == 3 and harness.events.of(MessageEnd)[-1].message == outcome.error
    assert len(harness.events.results()) == 3  # every call that was asked for has its result (I7)


@pytest.mark.parametrize(
    ("config", "prompt", "limit", "where"),
    [
        (0.0, 0.0002, "0.0002", "--max-cost"),
        (0.0004, 0.0002, "0.0002", "--max-cost"),
        (0.0002, 0.0004, "0.0002", "[agent]"),
        (0.0002, 0.0, "0.0002", "[agent]"),
    ],
)
async def test_of_two_cost_limits_the_smaller_counts_and_is_named(
    config: float, prompt: float, limit: str, where: str
) -> None:
    """Otherwise a prompt could spend more than its owner allows, or its sender would raise the wrong limit."""
    harness = Harness(ToldModel(lambda request: STEP), [counter()], prices=Prices(1, 1, 1, 1), max_cost=config)
    outcome = await harness.run(max_cost=prompt)
    assert outcome.status == "failed" and f"may cost {limit}." in outcome.error and where in outcome.error


async def test_a_budget_that_is_spent_in_the_middle_of_an_answer_stops_it_there() -> None:
    """Otherwise one endless answer could cost any amount, as long as it is one."""
    words: list[Chunk] = [TextChunk("a "), UsageChunk(Usage(0, 500)), TextChunk("b "), FinishChunk("end_turn")]
    harness = Harness(ToldModel(lambda request: words), max_tokens=100)
    outcome = await harness.run()
    assert outcome.status == "failed" and harness.events.texts() == ["a "]


async def test_an_answer_that_is_whole_is_not_thrown_away_for_its_last_tokens() -> None:
    """Otherwise a run that did its work would be told to have failed."""
    harness = Harness(scripted([{"say": "one two three"}]), max_tokens=1)
    assert await harness.run() == RunOutcome("completed")


async def test_what_came_out_of_the_cache_is_counted_at_its_own_price() -> None:
    """Otherwise the cost of long sessions would be told several times too high."""
    model = ToldModel(lambda request: [TextChunk("x"), UsageChunk(Usage(1_000, 10, 600, 300)), FinishChunk("end_turn")])
    harness = Harness(model, prices=Prices(10, 100, 1, 12))
    await harness.run()
    (gained,) = harness.events.of(UsageGained)
    assert gained.usage == Usage(1_000, 10, 600, 300)
    assert gained.cost == pytest.approx((100 * 10 + 600 * 1 + 300 * 12 + 10 * 100) / 1_000_000)


async def test_the_time_limit_is_that_of_the_run() -> None:
    """Otherwise nobody could give a run ten minutes."""
    harness = Harness(scripted([{"say": "a b c d e f g h", "delay_ms": 20}]), max_seconds=0.05)
    outcome = await harness.run()
    assert outcome.status == "failed" and "0.05 seconds of work" in outcome.error


@pytest.mark.parametrize("waits", ["permission", "question"])
async def test_the_time_people_take_is_theirs(waits: str) -> None:
    """Otherwise a question answered after lunch would end the run that asked it."""

    async def ask(_: dict[str, Any]) -> str:
        await asyncio.sleep(0.15 if waits == "question" else 0)
        return "yes"

    tool = TinyTool("ask", ask)
    tool.waits_for_people = True  # type: ignore[attr-defined]
    harness = Harness(scripted([{"tool": "ask"}], [{"say": "ok"}]), [tool], max_seconds=0.1)
    harness.events.seconds_to_approve = 0.15 if waits == "permission" else 0
    assert await harness.run() == RunOutcome("completed")


class Silent:
    """A model that is there and says nothing. `left`: its request was given up."""

    def __init__(self) -> None:
        self.left = False

    async def stream(self, request: ModelRequest, take: Take) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.left = True

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_the_time_limit_also_ends_a_run_whose_model_says_nothing() -> None:
    """Otherwise a provider that keeps its connection alive and does no more would hold a run for days."""
    model = Silent()
    harness = Harness(model, max_seconds=0.05)
    outcome = await harness.run()
    assert outcome.status == "failed" and "stopped after 0.05 seconds" in outcome.error and model.left
    assert harness.events.endings() == ["error"]


@pytest.mark.parametrize(("seconds", "words"), [(7_200, "2 hours"), (90, "1.5 minutes"), (3, "3 seconds")])
def test_a_time_is_told_in_words(seconds: float, words: str) -> None:
    """Otherwise people would have to divide by 3600."""
    clock = iter([0.0, seconds + 1])
    budget = Budget(lambda: next(clock), lambda: 0.0, max_seconds=seconds)
    with pytest.raises(GaveUp, match=words):
        budget.check()


def turns(*names: str) -> ToldModel:
    """A model that asks for these tools in turn, for ever."""
    order = cycle(names)
    return ToldModel(lambda request: [ToolCallChunk(0, "{}", "c", next(order)), FinishChunk("tool_use")])


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "c"), ("a", "a", "b", "b")])
async def test_steps_that_go_round_in_a_circle_end_the_run_with_a_reason(names: tuple[str, ...]) -> None:
    """Otherwise a model that looks here and there in turn would do so a hundred times."""
    model = turns(*names)
    outcome = await Harness(model, [TinyTool(name, lambda _: "same") for name in "abc"]).run()
    assert outcome.status == "failed" and f"the same {len(names)} steps" in outcome.error
    assert len(model.requests) == len(names) * limits.CYCLE_REPETITIONS


async def test_a_circle_in_which_something_changes_is_work() -> None:
    """Otherwise editing and testing in turn would be taken for being stuck."""
    harness = Harness(turns("a", "count"), [TinyTool("a", lambda _: "same"), counter()], max_steps=20)
    outcome = await harness.run()
    assert "after 20 steps" in outcome.error


async def test_waiting_for_what_is_still_at_work_is_no_circle() -> None:
    """Otherwise an agent that looks after a build of ten minutes would be stopped after the fourth look."""
    states = iter([*[ToolOutput("running", goes_on=True)] * 10, ToolOutput("built")])
    job = TinyTool("job", lambda _: next(states), read_only=True)
    waiting = [*["job", "sleep"] * 10, "job"]
    harness = Harness(turns(*waiting), [job, TinyTool("sleep", lambda _: "slept")], max_steps=len(waiting))
    outcome = await harness.run()
    assert f"after {len(waiting)} steps" in outcome.error


async def test_looking_at_what_is_over_is_a_circle() -> None:
    """Otherwise a model that asks again and again about a command that has ended would do so to its last step."""
    harness = Harness(turns("job"), [TinyTool("job", lambda _: ToolOutput("exited"), read_only=True)])
    assert "the same tool calls (job)" in (await harness.run()).error
