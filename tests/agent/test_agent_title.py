"""Titles: found beside the work of a run, and never in its way."""

import asyncio
from collections.abc import Callable

import pytest
from agent_recorders import Harness, ToldModel, scripted
from structlog.testing import capture_logs

from windlass import limits
from windlass.agent.settings import Prices, SmallModel
from windlass.agent.title import shortened_title
from windlass.wire.execution import RunOutcome
from windlass.wire.model import Chunk, FinishChunk, ModelError, ModelRequest, TextChunk, UsageChunk
from windlass.wire.run_events import MessageEnd, TitleSuggested, UsageGained
from windlass.wire.runs import Usage

TITLE: list[Chunk] = [TextChunk('"Rope '), TextChunk('and sail"\n'), UsageChunk(Usage(10, 3)), FinishChunk("end_turn")]


class Hanging(ToldModel):
    """Never answers."""

    def __init__(self) -> None:
        super().__init__(lambda request: TITLE)
        self.reached, self.stopped = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest, take: Callable[[Chunk], None]) -> None:
        self.reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


def named_by(small: ToldModel, input_price: float = 0.0) -> Harness:
    return Harness(scripted([{"say": "ok"}]), small=SmallModel(small, "small", Prices(input_price)))


async def test_without_a_small_model_the_first_line_is_the_title() -> None:
    """Otherwise sessions would have no name, or every one would cost a call of the large model."""
    harness = Harness(scripted([{"say": "ok"}]))
    await harness.run(prompt="\n  Mend the   sail\nand the rope", wants_title=True)
    assert harness.events.of(TitleSuggested) == [TitleSuggested("Mend the sail")]


async def test_a_session_with_a_name_is_left_alone() -> None:
    """Otherwise each run would rename its session, and pay for it."""
    small = ToldModel(lambda request: TITLE)
    harness = named_by(small)
    await harness.run(wants_title=False)
    assert harness.events.of(TitleSuggested) == [] and small.requests == []


async def test_a_small_model_finds_the_title_and_its_cost_is_counted() -> None:
    """Otherwise a title would be a first line, or its tokens would be missing in the sum (B16)."""
    small = ToldModel(lambda request: TITLE)
    harness = named_by(small, input_price=1_000_000)
    assert await harness.run(prompt="x" * 100_000, wants_title=True) == RunOutcome("completed")
    assert harness.events.of(TitleSuggested) == [TitleSuggested("Rope and sail")]
    assert UsageGained(Usage(10, 3), 10.0) in harness.events.of(UsageGained)
    (request,) = small.requests
    assert (request.model, request.tools) == ("small", [])
    assert len(request.messages[0].text) == limits.TITLE_PROMPT_CHARACTERS


async def test_the_first_step_does_not_wait_for_the_title() -> None:
    """Otherwise a slow small model would delay every first answer."""
    small = Hanging()
    harness = named_by(small)
    answered = asyncio.Event()
    harness.events.on_emit = lambda event: answered.set() if isinstance(event, MessageEnd) else None
    running = asyncio.ensure_future(harness.run(wants_title=True))
    await answered.wait()
    assert small.reached.is_set() and not small.stopped.is_set()
    harness.cancel.request()
    await running
    assert small.stopped.is_set()


async def test_a_title_that_does_not_come_is_not_waited_for_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a run that is over would hang on its name, or leave a task behind (I19)."""
    monkeypatch.setattr(limits, "TITLE_WAIT_SECONDS", 0.05)
    small = Hanging()
    harness = named_by(small)
    before = asyncio.all_tasks()
    assert await harness.run(prompt="Mend it", wants_title=True) == RunOutcome("completed")
    assert small.stopped.is_set() and asyncio.all_tasks() == before
    assert harness.events.of(TitleSuggested) == [TitleSuggested("Mend it")]


@pytest.mark.parametrize(
    "answer",
    [
        [ModelError("No.", kind="auth")],
        [FinishChunk("end_turn")],
        [TextChunk("x" * (limits.TITLE_ANSWER_CHARACTERS + 1))],
        [TextChunk(" \n``` \n")],
    ],
)
async def test_a_title_that_fails_fails_nothing(answer: list[Chunk | ModelError]) -> None:
    """Otherwise a wrong key for the small model would end every first run."""
    harness = named_by(ToldModel(lambda request: answer))
    assert await harness.run(prompt="Mend it", wants_title=True) == RunOutcome("completed")
    assert harness.events.of(TitleSuggested) == [TitleSuggested("Mend it")]


async def test_a_bug_in_the_small_model_fails_nothing_either() -> None:
    """Otherwise what is only a name would bring down the work it names."""

    def bug(request: ModelRequest) -> list[Chunk | ModelError]:
        raise KeyError("bug")

    harness = named_by(ToldModel(bug))
    with capture_logs() as logs:
        assert await harness.run(prompt="Mend it", wants_title=True) == RunOutcome("completed")
    assert [entry["log_level"] for entry in logs] == ["warning"]
    assert harness.events.of(TitleSuggested) == [TitleSuggested("Mend it")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        (" \n\t", ""),
        ("“Rope”", "Rope"),
        ("## Mend *it*", "Mend *it"),
        ("bell\x07 and\u202e more", "bell and more"),
        ("word " * 40, ("word " * 15 + "word")[:79].rstrip() + "…"),
        ("x" * 200, "x" * 79 + "…"),
    ],
)
def test_a_title_is_one_line_of_plain_words(text: str, title: str) -> None:
    """Otherwise a list of sessions could be broken by the name of one."""
    made = shortened_title(text)
    assert made == title and len(made) <= limits.FIRST_TITLE_CHARACTERS
