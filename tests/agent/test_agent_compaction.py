"""Compaction: a conversation that outgrows the window is summed up, and the run goes on."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from agent_recorders import Harness, TinyTool, ToldModel, message
from wires import WIRES

from windlass.agent.history import conversation
from windlass.agent.summary import INSTRUCTION
from windlass.models import anthropic_request
from windlass.wire.execution import RunOutcome, SteerMessage
from windlass.wire.messages import Binary, Finish, FinishData, Message
from windlass.wire.model import (
    Chunk,
    FinishChunk,
    ModelError,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from windlass.wire.run_events import MessageEnd, MessageStart, Step, UsageGained
from windlass.wire.runs import Attachment, Usage

Answer = list[Chunk | ModelError]
WINDOW = {"context_window": 12_000, "default_max_tokens": 2_000}
SUMMARY: Answer = [TextChunk("All is well so far."), FinishChunk("end_turn")]
DONE: Answer = [TextChunk("Done."), FinishChunk("end_turn")]
OVERFLOW = ModelError("Too long.", kind="overflow")


def is_summary(request: ModelRequest) -> bool:
    return request.messages[-1].text == INSTRUCTION


def calling(number: int) -> Answer:
    return [
        ReasoningChunk("hm", '{"encrypted_content": "e"}'),
        TextChunk(f"Step {number}.", 1),
        ToolCallChunk(0, f'{{"n": {number}}}', f"c{number}", "read"),
        ToolCallChunk(1, f'{{"n": {-number}}}', f"d{number}", "read"),
        FinishChunk("tool_use"),
    ]


class Worker:
    """Reads for so many steps, then is done; sums up when it is told to, as `summary` says."""

    def __init__(self, steps: int, summary: Iterable[Answer] = (), each: Callable[[int], Answer] = calling) -> None:
        self.steps = 0
        self._most = steps
        self._summaries: Iterator[Answer] = iter(summary)
        self._each = each

    def __call__(self, request: ModelRequest) -> Answer:
        if is_summary(request):
            return next(self._summaries, SUMMARY)
        self.steps += 1
        return DONE if self.steps > self._most else self._each(self.steps)


def reader(characters: int = 3_000) -> TinyTool:
    return TinyTool("read", lambda arguments: f"{arguments['n']} ".ljust(characters, "x"), read_only=True)


def working(steps: int, *summaries: Answer, **settings: Any) -> tuple[Harness, ToldModel]:
    model = ToldModel(Worker(steps, summaries))
    return Harness(model, [reader()], **{**WINDOW, **settings}), model


async def test_a_conversation_that_outgrows_its_window_is_summed_up_and_the_run_goes_on() -> None:
    """Otherwise a long run would end with an overflow, or forget what it did (B16)."""
    harness, model = working(12)
    assert await harness.run(prompt="Read it all.") == RunOutcome("completed")
    asked = [is_summary(request) for request in model.requests]
    assert asked.count(True) >= 2 and len(harness.events.of(Step)) == 13
    after = model.requests[asked.index(True) + 1].messages
    assert [one.role for one in after] == ["user"]
    assert "All is well so far." in after[0].text and after[0].text.endswith("Read it all.")


async def test_the_summary_is_a_message_that_says_what_it_is() -> None:
    """Otherwise people could not read what their agent remembers, and a restart would not know either."""
    harness, _ = working(6)
    await harness.run()
    (start,) = [event for event in harness.events.of(MessageStart) if event.is_summary]
    stored = next(one for one in harness.events.messages() if one.id == start.message_id)
    assert stored.is_summary_message and stored.finish is not None and stored.finish.reason == "end_turn"
    assert stored.text == "All is well so far.\n\nWhat was asked, word for word:\n\ngo"


async def test_the_request_for_a_summary_is_what_was_sent_all_along_and_one_message_more() -> None:
    """Otherwise the provider would not find it in its cache, and the longest request would cost the full price."""
    harness, model = working(6)
    await harness.run()
    at = next(number for number, request in enumerate(model.requests) if is_summary(request))
    before, asked = model.requests[at - 1], model.requests[at]
    assert asked.messages[: len(before.messages)] == before.messages
    assert (asked.system, asked.tools) == (before.system, before.tools)


async def test_a_conversation_read_back_begins_as_the_one_in_memory_did() -> None:
    """Otherwise the next run would remember something else, and find nothing in the cache (B17)."""
    harness, model = working(8)
    await harness.run(prompt="Read it all.")
    stored = [message("user", "Read it all."), *harness.events.messages(), message("user", "next")]
    again = conversation(stored)
    assert [bare(one) for one in again[: len(model.requests[-1].messages)]] == [
        bare(one) for one in model.requests[-1].messages
    ]


def bare(one: Message) -> tuple[str, list[Any]]:
    """What providers are sent of a message."""
    parts = [msgspec.to_builtins(part) for part in one.parts]
    for part in parts:
        part["data"].pop("finished", None)
    return one.role, parts


async def test_what_people_steered_and_attached_outlives_a_summary() -> None:
    """Otherwise a wish would be gone with the words of the model for it, and a picture for good."""
    harness, model = working(6)
    picture = Attachment("a.png", "a.png", "image/png", "QUJD")
    harness.steers.waiting.append(SteerMessage("S", "And be kind.", "msg_s"))
    await harness.run(prompt="Look at this.", attachments=[picture])
    at = next(number for number, request in enumerate(model.requests) if is_summary(request))
    framed = model.requests[at + 1].messages[0]
    assert framed.text.endswith("Look at this.\n\n---\n\nAnd be kind.")
    assert [part.data.data for part in framed.parts if isinstance(part, Binary)] == ["QUJD"]


@pytest.mark.parametrize(("prompt_tokens", "summaries"), [(100, 0), (7_900, 1)])
async def test_the_provider_s_own_count_decides_when(prompt_tokens: int, summaries: int) -> None:
    """Otherwise a tokenizer that we do not know would make us sum up far too early, or too late."""
    answer: Callable[[int], Answer] = lambda number: [*calling(number), UsageChunk(Usage(prompt_tokens))]  # noqa: E731
    model = ToldModel(Worker(20 if not summaries else 2, each=answer))
    await Harness(model, [reader()], **WINDOW).run()
    assert sum(map(is_summary, model.requests)) == summaries


async def test_a_summary_that_would_free_little_is_not_made() -> None:
    """Otherwise an agent with many tools and a small window would do nothing but sum up."""
    model = ToldModel(Worker(6))
    harness = Harness(model, [reader(10)], prompt=lambda *_: "x" * 27_000, **WINDOW)
    assert await harness.run() == RunOutcome("completed")
    assert not any(map(is_summary, model.requests))


async def test_a_refusal_as_too_long_is_summed_up_once_and_asked_again() -> None:
    """Otherwise a model whose window nobody configured would end every long session (B16)."""
    told = {"refused": False}

    def each(number: int) -> Answer:
        if number == 5 and not told["refused"]:
            told["refused"] = True
            return [OVERFLOW]
        return calling(number)

    model = ToldModel(Worker(7, each=each))
    harness = Harness(model, [reader()])
    assert await harness.run() == RunOutcome("completed")
    assert harness.events.endings()[4:6] == ["error", "end_turn"]
    assert "goes on" in harness.events.of(MessageEnd)[4].message
    assert sum(map(is_summary, model.requests)) >= 1


async def test_a_prompt_that_is_too_long_by_itself_is_told_so() -> None:
    """Otherwise an agent would sum up the same prompt over and over."""
    model = ToldModel(lambda request: [OVERFLOW])
    harness = Harness(model, [], context_window=1_000)
    assert await harness.run(prompt="x" * 10_000) == RunOutcome("failed", "Too long.")
    assert len(model.requests) == 1


async def test_a_summary_that_is_too_long_itself_is_asked_for_with_less() -> None:
    """Otherwise a conversation that is already beyond the window could never be saved."""
    harness, model = working(6, [OVERFLOW], SUMMARY, context_window=14_000)
    assert await harness.run() == RunOutcome("completed")
    first, second, *_ = [request for request in model.requests if is_summary(request)]
    assert len(second.messages) < len(first.messages) and "left out" in second.messages[0].text
    assert len([event for event in harness.events.of(MessageStart) if event.is_summary]) == 1


@pytest.mark.parametrize(
    "failure",
    [
        [ModelError("No.", kind="refused")],
        [TextChunk("Half a"), FinishChunk("max_tokens")],
    ],
)
async def test_without_a_summary_the_oldest_steps_are_left_out_and_people_are_told(failure: Answer) -> None:
    """Otherwise a run would fail for want of a summary, or forget in silence."""
    harness, model = working(12, *[failure] * 30)
    assert await harness.run(prompt="Read it all.") == RunOutcome("completed")
    ends = [end for end in harness.events.of(MessageEnd) if "could not be summed up" in end.message]
    assert [end.reason in ("error", "max_tokens") for end in ends] == [True]  # tried once, not at every step
    last = model.requests[-1].messages
    assert "left out" in last[0].text and "Read it all." in [one.text for one in last]
    assert not any("Half a" in one.text for one in last)


async def test_a_summary_is_words_even_if_the_model_calls_tools() -> None:
    """Otherwise a call without a result would be in the history, or a tool would run that nobody sees (I7)."""
    harness, _ = working(6, [ToolCallChunk(0, "{}", "z", "read"), TextChunk("Summed."), FinishChunk("tool_use")])
    assert await harness.run() == RunOutcome("completed")
    summary = next(one for one in harness.events.messages() if one.is_summary_message)
    assert summary.text.startswith("Summed.") and summary.tool_calls == []
    assert "z" not in [result.tool_call_id for result in harness.events.results()]


async def test_a_cancel_during_compaction_ends_the_work() -> None:
    """Otherwise a cancelled run would go on summing up, at the longest request's price (B16)."""
    reached, stopped = asyncio.Event(), asyncio.Event()

    class Hanging(ToldModel):
        async def stream(self, request: ModelRequest, take: Callable[[Chunk], None]) -> None:
            if is_summary(request):
                reached.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.set()
            await super().stream(request, take)

    harness = Harness(Hanging(Worker(12)), [reader()], **WINDOW)
    running = asyncio.ensure_future(harness.run())
    await reached.wait()
    harness.cancel.request()
    assert await running == RunOutcome("canceled")
    assert stopped.is_set() and harness.events.of(MessageStart)[-1].is_summary


async def test_a_summary_costs_what_it_costs() -> None:
    """Otherwise the sum under a session would be too small (B16)."""
    harness, _ = working(6, [TextChunk("S."), UsageChunk(Usage(7_000, 5)), FinishChunk("end_turn")])
    await harness.run()
    assert UsageGained(Usage(7_000, 5), 0.0) in harness.events.of(UsageGained)


# -- a run that only sums up -------------------------------------------------------------------------------------------

EARLIER = [message("user", "one"), message("assistant", "two"), message("user", "Sum up, please.")]


async def test_a_person_can_have_it_summed_up() -> None:
    """Otherwise people would have to wait until it is too late for a good summary (B16)."""
    model = ToldModel(lambda request: SUMMARY)
    harness = Harness(model, [reader()])
    assert await harness.run(messages=EARLIER, purpose="summarize", wants_title=True) == RunOutcome("completed")
    assert [(event.role, event.is_summary) for event in harness.events.of(MessageStart)] == [("assistant", True)]
    assert harness.events.texts() == ["All is well so far."] and harness.events.endings() == ["end_turn"]
    assert [is_summary(request) for request in model.requests] == [True]


async def test_a_summary_that_fails_fails_the_run_that_is_for_it() -> None:
    """Otherwise a person would think that it was done."""
    harness = Harness(ToldModel(lambda request: [ModelError("No.", kind="refused")]))
    outcome = await harness.run(messages=EARLIER, purpose="summarize")
    assert (outcome.status, harness.events.endings()) == ("failed", ["error"]) and "No." in outcome.error


async def test_with_nothing_to_sum_up_the_run_says_so() -> None:
    """Otherwise a model would be paid to make a story up."""
    model = ToldModel(lambda request: SUMMARY)
    outcome = await Harness(model).run(purpose="summarize")
    assert "nothing to sum up" in outcome.error and model.requests == []


# -- the cache ---------------------------------------------------------------------------------------------------------


def sent(encode: Callable[[list[Message]], Any], request: ModelRequest) -> tuple[bytes, bytes]:
    """The encoded messages without what closes their list, and everything else."""
    if encode.__name__ == "anthropic":
        body: dict[str, Any] = dict(anthropic_request.body(request, "test"))
    else:
        body = encode(request.messages)
    messages = body.pop("messages", None) or body.pop("input")
    return msgspec.json.encode(messages)[:-1], msgspec.json.encode(body)


async def thirty_steps(**settings: Any) -> list[ModelRequest]:
    model = ToldModel(Worker(30))
    harness = Harness(model, [reader()], **settings)
    steer = SteerMessage("S", "And be kind.", "msg_s")

    def steer_once(event: Any) -> None:
        if isinstance(event, Step) and event.number == 11:
            harness.steers.waiting.append(steer)

    harness.events.on_emit = steer_once
    assert await harness.run() == RunOutcome("completed")
    return model.requests


@pytest.mark.parametrize("encode", [encode for encode, _ in WIRES])
async def test_no_byte_before_the_newest_message_changes(encode: Callable[[list[Message]], Any]) -> None:
    """Otherwise each step of a long run would cost its whole conversation anew, on any of the wires."""
    requests = await thirty_steps()
    assert len(requests) == 31 and any(one.text == "And be kind." for one in requests[-1].messages)
    for (earlier, rest), (later, same) in pairwise(sent(encode, request) for request in requests):
        assert later.startswith(earlier) and rest == same


@pytest.mark.parametrize("encode", [encode for encode, _ in WIRES])
async def test_only_a_compaction_changes_what_was_sent(encode: Callable[[list[Message]], Any]) -> None:
    """Otherwise compaction would cost more than it saves."""
    requests = await thirty_steps(**WINDOW)
    compactions = 0
    for before, after in pairwise(requests):
        if is_summary(before):
            compactions += 1
            continue
        (earlier, _), (later, _) = sent(encode, before), sent(encode, after)
        assert later.startswith(earlier)
    assert 2 <= compactions <= 12


def test_a_summary_that_was_not_finished_stands_for_nothing() -> None:
    """Otherwise a cancel during a summary would cost the whole memory of a session."""
    half = msgspec.structs.replace(message("assistant", "Half a summary"), is_summary_message=True)
    made = conversation([message("user", "one"), message("assistant", "two"), message("user", "three"), half])
    assert [one.text for one in made] == ["one", "two", "three"]


def test_nothing_before_a_summary_is_sent() -> None:
    """Otherwise a summary would only make a conversation longer."""
    whole = msgspec.structs.replace(
        message("assistant", "The sum.", Finish(FinishData("end_turn", 0))), is_summary_message=True
    )
    made = conversation([*EARLIER, whole, message("user", "next")])
    assert [one.role for one in made] == ["user", "user"]
    assert "The sum." in made[0].text and made[1].text == "next"
