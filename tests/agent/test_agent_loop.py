"""The agent loop: steps, streaming, steering, and its bounds."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from agent_recorders import Harness, TinyTool, message, scripted, spec

from windlass import limits
from windlass.agent.opening import opening
from windlass.agent.settings import Prices
from windlass.models.openai import OpenAIModel
from windlass.testing.model_server import ModelServer
from windlass.wire.execution import RunOutcome, SteerMessage
from windlass.wire.messages import Binary, ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, ResetMessage, SteerTaken, Step, UsageGained
from windlass.wire.runs import Attachment, Usage


def echo(**options: Any) -> TinyTool:
    return TinyTool("echo", lambda arguments: arguments.get("text", "nothing"), **options)


async def test_an_answer_is_started_streamed_and_ended() -> None:
    """Otherwise readers would see no message, or one that never ends."""
    harness = Harness(scripted([{"say": "Hello there."}]))
    assert await harness.run() == RunOutcome("completed")
    assert [type(event) for event in harness.events.all] == [Step, MessageStart, Delta, Delta, UsageGained, MessageEnd]
    assert (harness.events.texts(), harness.events.endings()) == (["Hello there."], ["end_turn"])


async def test_the_message_is_announced_before_the_model_is_called() -> None:
    """Otherwise a cancel while the model is being connected to would leave no message to end (B05)."""
    async with ModelServer() as server:
        model = OpenAIModel("test", server.url, "")
        harness = Harness(model)
        running = asyncio.ensure_future(harness.run())
        call = await server.next_call()
        assert [event.role for event in harness.events.of(MessageStart)] == ["assistant"]
        await call.say("x")
        await call.end()
        await running
        await model.aclose()


async def test_parts_are_numbered_as_they_appear_and_named_once() -> None:
    """Otherwise a reader could not put the deltas together (I16)."""
    reply = [{"think": "hm"}, {"say": "a b"}, {"tool": "echo", "input": {"text": "x"}, "id": "c1"}]
    harness = Harness(scripted(reply, [{"say": "ok"}]), [echo()])
    await harness.run()
    deltas = [event for event in harness.events.of(Delta) if event.message_id == "msg_1"]
    assert [(d.part, d.field, d.part_type, d.id, d.name) for d in deltas] == [
        (0, "thinking", "reasoning", "", ""),
        (1, "text", "text", "", ""),
        (1, "text", "", "", ""),
        (2, "input", "tool_call", "c1", "echo"),
        (2, "input", "", "", ""),
    ]


async def test_tool_calls_are_facts_before_a_tool_runs() -> None:
    """Otherwise a crash would leave effects of a tool that nobody asked for, as far as anyone can see (I7)."""
    ended_before: list[bool] = []
    tool = TinyTool("look", lambda _: ended_before.append(bool(harness.events.durable_ones)) or "ok")
    harness = Harness(scripted([{"tool": "look"}], [{"say": "done"}]), [tool])
    await harness.run()
    assert ended_before == [True] and harness.events.endings()[0] == "tool_use"


async def test_the_model_is_shown_the_result_of_its_tool() -> None:
    """Otherwise it would work blindly."""
    async with ModelServer() as server:
        model = OpenAIModel("test", server.url, "")
        running = asyncio.ensure_future(Harness(model, [echo()]).run())
        first = await server.next_call()
        await first.tool("echo", {"text": "42"})
        await first.end()
        second = await server.next_call()
        await second.say("ok")
        await second.end()
        await running
        await model.aclose()
    assert second.request["messages"][-1] == {"role": "tool", "tool_call_id": "call_0", "content": "42"}


async def test_usage_comes_with_its_cost() -> None:
    """Otherwise nobody would know what a session cost (B16)."""
    harness = Harness(scripted([{"say": "one two"}]), prices=Prices(input=1_000_000, output=10_000_000))
    await harness.run()
    assert harness.events.of(UsageGained) == [UsageGained(Usage(1, 2), 21.0)]


async def test_a_steer_makes_a_model_that_ended_its_turn_go_on() -> None:
    """Otherwise a message sent into a run would be lost in its last moment (B14)."""
    async with ModelServer() as server:
        model = OpenAIModel("test", server.url, "")
        harness = Harness(model)
        running = asyncio.ensure_future(harness.run())
        first = await server.next_call()
        harness.steers.waiting.append(SteerMessage("S", "and also this", "msg_s"))
        await first.say("done")
        await first.end()
        second = await server.next_call()
        await second.say("did that too")
        await second.end()
        assert await running == RunOutcome("completed")
        await model.aclose()
    assert second.request["messages"][-1] == {"role": "user", "content": "and also this"}
    assert harness.events.of(SteerTaken) == [SteerTaken("S")]


async def test_a_steer_during_tools_enters_after_their_results() -> None:
    """Otherwise it would stand between a call and its result, and the provider would refuse the conversation."""
    steer = SteerMessage("S", "stop there", "msg_s", [Attachment("a.png", "a.png", "image/png", "QUJD")])
    steers = [steer]
    tool = TinyTool("look", lambda _: harness.steers.waiting.extend(steers.pop() for _ in steers[:]))
    harness = Harness(scripted([{"tool": "look"}]), [tool])
    await harness.run()
    kinds = [type(event) for event in harness.events.all if isinstance(event, SteerTaken | MessageStart)]
    assert kinds == [MessageStart, MessageStart, SteerTaken, MessageStart, MessageStart, MessageStart]


def test_attachments_reach_the_model_though_the_prompt_message_has_none() -> None:
    """Otherwise a picture sent with a prompt would silently be left out."""

    opened = opening(spec(attachments=[Attachment("a.png", "a.png", "image/png", "QUJD")]))
    assert isinstance(opened[-1].parts[-1], Binary)


async def test_too_many_steps_end_the_run_with_a_reason() -> None:
    """Otherwise an agent going in circles would go on until the money is gone."""
    numbers = iter(range(100))
    tool = TinyTool("count", lambda _: next(numbers))
    harness = Harness(scripted([{"tool": "count"}], repeat=True), [tool], max_steps=3)
    outcome = await harness.run()
    assert outcome.status == "failed" and "after 3 steps" in outcome.error
    assert harness.events.of(MessageEnd)[-1].message == outcome.error
    assert harness.events.endings() == ["tool_use", "tool_use", "tool_use", "error"]


async def test_identical_steps_end_the_run_with_a_reason() -> None:
    """Otherwise a model that is stuck would ask the same a hundred times."""
    tool = echo()
    harness = Harness(scripted([{"tool": "echo", "input": {"text": "same"}}], repeat=True), [tool])
    outcome = await harness.run()
    assert outcome.status == "failed" and "same tool calls (echo)" in outcome.error
    assert len(tool.ran) == limits.IDENTICAL_STEPS


async def test_the_same_call_with_other_results_is_progress() -> None:
    """Otherwise waiting for a build by asking for its state would be taken for being stuck."""
    numbers = iter(range(100))
    replies = [[{"tool": "state"}]] * 8
    harness = Harness(scripted(*replies, [{"say": "built"}]), [TinyTool("state", lambda _: next(numbers))])
    assert await harness.run() == RunOutcome("completed")


async def test_too_much_time_ends_the_run_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a run that drips along would live for days."""
    monkeypatch.setattr(limits, "RUN_SECONDS", 0.05)
    harness = Harness(scripted([{"say": "a b c d e f g h", "delay_ms": 20}]))
    outcome = await harness.run()
    assert outcome.status == "failed" and "seconds of work" in outcome.error
    assert harness.events.endings() == ["error"]


@pytest.mark.parametrize("reason", ["max_tokens", "content_filter"])
async def test_a_cut_off_answer_completes_the_run_and_says_so(reason: str) -> None:
    """Otherwise a long answer would be lost, or pass for a whole one."""
    harness = Harness(scripted([{"say": "Once upon"}, {"finish": reason}]))
    assert await harness.run() == RunOutcome("completed")
    assert harness.events.endings() == [reason]


async def test_a_call_in_a_cut_off_answer_is_not_run_but_answered() -> None:
    """Otherwise half a command would be run, or a call would stay without a result (I7)."""
    tool = echo()
    harness = Harness(scripted([{"tool": "echo", "input": '{"text": "ha'}, {"finish": "max_tokens"}]), [tool])
    await harness.run()
    assert tool.planned == []
    assert [(result.tool_call_id, result.is_error) for result in harness.events.results()] == [("call_0_0", True)]


async def test_call_ids_never_repeat_within_a_conversation() -> None:
    """Otherwise a provider that counts from zero in each answer would mix up results."""
    before = [
        message("user", "earlier"),
        message("assistant", ToolCall(ToolCallData("c", "echo", "{}"))),
        message("tool", ToolResult(ToolResultData("c", "echo", "x", "", False))),
        message("assistant", "ok"),
        message("user", "go"),
    ]
    reply = [{"tool": "echo", "id": "c"}, {"tool": "echo", "id": "c", "input": {"text": "b"}}]
    harness = Harness(scripted(reply, [{"say": "ok"}]), [echo()])
    await harness.run(messages=before)
    assert [result.tool_call_id for result in harness.events.results()] == ["c_2", "c_3"]


async def test_a_cancel_token_stops_the_model_at_once() -> None:
    """Otherwise a cancelled run would go on talking, and costing (B18)."""
    async with ModelServer() as server:
        model = OpenAIModel("test", server.url, "")
        harness = Harness(model)
        running = asyncio.ensure_future(harness.run())
        call = await server.next_call()
        await call.say("word")
        harness.cancel.request()
        await call.closed()
        assert await running == RunOutcome("canceled")
        await model.aclose()
    assert harness.events.endings() == []


async def test_a_cancelled_task_passes_its_cancel_on_and_leaves_nothing() -> None:
    """Otherwise the owner of the run would think that it ended by itself, or a tool would go on alone (B18 I19)."""
    reached, stopped = asyncio.Event(), asyncio.Event()

    async def hang(_: dict[str, Any]) -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    harness = Harness(scripted([{"tool": "hang"}]), [TinyTool("hang", hang)])
    before = asyncio.all_tasks()
    running = asyncio.ensure_future(harness.run())
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stopped.is_set() and asyncio.all_tasks() == before


async def test_a_cancel_nobody_asked_for_is_a_failure() -> None:
    """Otherwise a tool's own cancelled future would make a run look as if a person had stopped it (B03)."""

    async def broken(_: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="from within"):
        await Harness(scripted([{"tool": "broken"}]), [TinyTool("broken", broken)]).run()


async def test_what_nobody_expected_is_raised() -> None:
    """Otherwise a bug would be told to the model instead of to us."""

    def bug(_: dict[str, Any]) -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        await Harness(scripted([{"tool": "bug"}]), [TinyTool("bug", bug)]).run()


async def test_a_retry_empties_the_message_first() -> None:
    """Otherwise readers would see the beginning twice (I16)."""
    harness = Harness(scripted([{"say": "Half"}, {"error": "lost", "retryable": True}], [{"say": "Whole"}]))
    assert await harness.run() == RunOutcome("completed")
    assert (harness.events.texts(), len(harness.events.of(ResetMessage))) == (["Whole"], 1)


async def test_a_retry_before_the_first_word_resets_nothing() -> None:
    """Otherwise every failed connection would make a fact for nothing."""
    harness = Harness(scripted([{"error": "lost", "retryable": True}], [{"say": "Whole"}]))
    await harness.run()
    assert harness.events.of(ResetMessage) == []


async def test_retries_wait_longer_each_time_and_end() -> None:
    """Otherwise a provider that is down would be hammered, or a run would wait for ever."""
    harness = Harness(scripted([{"error": "down", "retryable": True}]))
    assert await harness.run() == RunOutcome("failed", "down")
    assert len(harness.slept) == limits.MODEL_RETRIES and harness.slept == sorted(harness.slept)
    assert harness.events.endings() == ["error"]


async def test_the_wait_a_provider_asks_for_is_kept() -> None:
    """Otherwise it would refuse us again, for longer."""
    harness = Harness(scripted([{"error": "slow down", "retryable": True, "retry_after": 45}], [{"say": "ok"}]))
    await harness.run()
    assert harness.slept == [45]


async def test_a_wait_of_an_hour_is_told_instead_of_kept() -> None:
    """Otherwise people would look at a run that does nothing and does not say why."""
    harness = Harness(scripted([{"error": "back in an hour", "retryable": True, "retry_after": 3600}]))
    assert await harness.run() == RunOutcome("failed", "back in an hour")
    assert harness.slept == []


async def test_a_refusal_is_not_retried_and_is_said_in_the_message() -> None:
    """Otherwise a wrong key would be tried five times, or people would see no reason."""
    harness = Harness(scripted([{"error": "Check the key."}]))
    assert await harness.run() == RunOutcome("failed", "Check the key.")
    assert [(end.reason, end.message) for end in harness.events.of(MessageEnd)] == [("error", "Check the key.")]


async def test_a_call_that_was_streamed_before_the_failure_gets_a_result() -> None:
    """Otherwise the conversation could not be continued (I7)."""
    harness = Harness(scripted([{"tool": "echo"}, {"error": "gone"}]), [echo()])
    await harness.run()
    assert [result.is_error for result in harness.events.results()] == [True]


async def test_an_empty_answer_is_tried_once_more() -> None:
    """Otherwise a hiccup of a model would end a run with nothing."""
    harness = Harness(scripted([{"think": "hm"}], [{"say": "Here."}]))
    assert await harness.run() == RunOutcome("completed")
    assert harness.events.texts() == ["Here."]


async def test_two_empty_answers_fail_the_run() -> None:
    """Otherwise a run would end as completed without a word."""
    harness = Harness(scripted([]))
    assert await harness.run() == RunOutcome("failed", "The model answered with nothing.")
    assert len(harness.slept) == 1


async def test_every_request_begins_with_the_one_before_also_in_the_next_run() -> None:
    """Otherwise the provider's cache would be of no use, and long sessions would cost many times as much."""
    reply = [{"think": "hm"}, {"say": " \n"}, {"tool": "echo", "input": {"text": "a"}}, {"tool": "echo", "input": "{x"}]
    async with ModelServer() as server:
        server.auto(lambda body: [{"say": "ok"}] if body["messages"][-1]["role"] == "tool" else reply)
        model = OpenAIModel("test", server.url, "")
        stored = [message("user", "one")]
        for prompt in ("two", "three"):
            harness = Harness(model, [echo()])
            await harness.run(messages=stored)
            stored = [*stored, *harness.events.messages(), message("user", prompt)]
        await model.aclose()
        sent = [body["messages"] for body in server.requests]
    assert len(sent) == 4
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(sent))
