"""Long sessions: what a step costs does not grow with what was said before it (B17)."""

import asyncio

from agent_recorders import Harness, ToldModel, message
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_conversations import conversations

from windlass import limits
from windlass.agent.gauge import Gauge
from windlass.agent.history import History, conversation
from windlass.wire.messages import Message, Text, TextData
from windlass.wire.model import FinishChunk, TextChunk


def talk(turns: int) -> list[Message]:
    return [message(role, f"{role} {turn}") for turn in range(turns) for role in ("user", "assistant")]


@settings(deadline=None)
@given(conversations, st.booleans())
def test_a_history_that_grows_is_the_conversation_it_has_grown_to(stored: list[Message], images: bool) -> None:
    """Otherwise a long run would send something else than the same session read back from disk (I7)."""
    history = History(images=images)
    for count in range(len(stored) + 1):
        assert history.sent(stored[:count]) == conversation(stored[:count], images=images)


@settings(deadline=None)
@given(conversations)
def test_a_history_read_in_slices_is_the_same(stored: list[Message]) -> None:
    """Otherwise a long session would be told wrongly, and a short one not."""
    stored = [*stored * 3, *talk(limits.HISTORY_SLICE_MESSAGES), *stored * 3]
    history = History()
    for _ in history.read(stored):
        pass
    assert history.sent(stored) == conversation(stored)


def test_a_step_makes_only_what_is_new() -> None:
    """Otherwise step five hundred would cost five hundred times the first one, on the loop that everyone shares."""
    stored = talk(1_000)
    history = History()
    before = history.sent([*stored, message("user", "next")])
    after = history.sent([*stored, message("user", "next"), message("assistant", "done"), message("user", "more")])
    assert all(one is other for one, other in zip(before[:-2], after, strict=False))


def test_a_message_is_estimated_once() -> None:
    """Otherwise a provider that never counts tokens would have us count the whole session at each step."""
    stored = [message("user", "x" * 300) for _ in range(10)]
    gauge = Gauge(1_000_000, 0)
    used = gauge.used(stored)
    stored[0].parts.append(Text(TextData("y" * 3_000)))  # nobody does that: it shows who looks
    assert gauge.used(stored) == used
    gauge.forget()
    assert gauge.used(stored) > used


async def test_a_run_in_a_long_session_lets_others_work_while_it_begins() -> None:
    """Otherwise everyone's words would stand still whenever someone goes on with a long session (limits: 20 ms)."""
    turns = 10 * limits.HISTORY_SLICE_MESSAGES
    ticks = 0
    at_the_request = 0

    def answer(request: object) -> list[TextChunk | FinishChunk]:
        nonlocal at_the_request
        at_the_request = ticks
        return [TextChunk("Hello."), FinishChunk("end_turn")]

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    other = asyncio.create_task(tick())
    try:
        await Harness(ToldModel(answer), context_window=10_000_000).run(messages=[*talk(turns), message("user", "go")])
    finally:
        other.cancel()
        await asyncio.wait({other})
    assert at_the_request >= turns // limits.HISTORY_SLICE_MESSAGES
