"""What a run spent its time on, told from its facts."""

from pathlib import Path
from typing import Any

import msgspec
from cast import Cast, Stage
from engine_world import EngineWorld
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass import limits
from windlass.engine import reading
from windlass.engine.timeline import RunFact, decode, timeline_of
from windlass.journal.records import Trim
from windlass.wire.messages import (
    Finish,
    FinishData,
    Message,
    Part,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.permissions import By, PermissionNotification, PermissionRequest
from windlass.wire.questions import Question, QuestionBatch, QuestionNotification
from windlass.wire.run_events import MessageEnd, MessageStart, PartAdded, UsageGained
from windlass.wire.runs import Run, Usage
from windlass.wire.timeline import Span, Timeline

T = 1_800_000_000.0  # 2027-01-15T08:00:00Z
BASE = Run(
    id="r1",
    session_id="s1",
    state="accepted",
    cancel_requested=False,
    prompt="go",
    disposition="started",
    message_ids=(),
    usage=Usage(),
    cost=0.0,
    created_at="2027-01-15T08:00:00.000Z",
)


def fact(at: float, kind: str, body: Any, change: str = "updated") -> RunFact:
    """As it comes from the disk."""
    made = decode(T + at, kind, change, msgspec.json.encode(body))
    assert made is not None
    return made


def run(at: float, state: Any, *, tokens: int = 0, change: str = "updated") -> RunFact:
    fields: dict[str, Any] = {"state": state, "usage": Usage(tokens, tokens // 10)}
    if state not in ("accepted", "queued"):
        fields["started_at"] = "2027-01-15T08:00:02.000Z"
    if state in ("completed", "canceled"):
        fields["ended_at"] = "2027-01-15T08:00:30.000Z"
    return fact(at, "run", msgspec.structs.replace(BASE, **fields), change)


def answer(at: float, id: str, *calls: str, reason: Any = "", created_at: float = 0.0) -> RunFact:
    parts: list[Part] = [ToolCall(ToolCallData(call, "bash", "{}", True)) for call in calls]
    if reason:
        parts.append(Finish(FinishData(reason, 0)))
    began = int(T + (created_at or at))
    message = Message(id, "assistant", "s1", parts, "model", "provider", began, began)
    return fact(at, "message", message, "updated" if reason else "created")


def result(at: float, call: str, *, is_error: bool = False, name: str = "bash", metadata: str = "") -> RunFact:
    data = ToolResultData(call, name, "out", metadata, is_error)
    return fact(at, "message", Message(f"m-{call}", "tool", "s1", [ToolResult(data)], "", "", 0, 0), "created")


def asks(at: float, call: str) -> RunFact:
    return fact(
        at, "permission_request", PermissionRequest(f"p-{call}", "s1", call, "bash", "", "execute", {}, "", "s1")
    )


def notified(at: float, call: str, outcome: Any, by: str = "ada") -> RunFact:
    told = PermissionNotification(call, f"p-{call}", outcome, outcome == "granted", outcome == "denied", "s1", By(by))
    return fact(at, "permission_notification", told, "created")


def told(*facts: RunFact) -> Timeline:
    return timeline_of(BASE, facts)


def shown(timeline: Timeline) -> list[tuple[str, float, float]]:
    """Kinds and times since the run was accepted; -1 for what goes on."""
    return [
        (span.kind, round(span.start - T, 3), round(span.end - T, 3) if span.end else -1.0) for span in timeline.spans
    ]


STORY = (
    run(0, "queued", change="created"),
    run(2, "running"),
    answer(3, "m1"),
    run(4, "running", tokens=100),
    answer(5, "m1", "c1", reason="tool_use"),
    notified(6, "c1", "asked"),
    asks(6, "c1"),
    notified(9, "c1", "granted"),
    result(12, "c1"),
    answer(13, "m2"),
    run(14, "running", tokens=250),
    answer(15, "m2", reason="end_turn"),
    run(16, "completed", tokens=250),
)


def test_a_run_is_told_as_waiting_model_tool_and_people() -> None:
    """Nobody could see why a run took so long."""
    timeline = told(*STORY)
    assert (timeline.run_id, timeline.start, timeline.end, timeline.whole) == ("r1", T, T + 16, True)
    assert shown(timeline) == [
        ("queue", 0, 2),
        ("model", 3, 5),
        ("tool", 6, 12),
        ("permission", 6, 9),
        ("model", 13, 15),
    ]


def test_a_span_says_what_it_was_and_how_it_ended() -> None:
    """A picture of bars without names."""
    queue, first, tool, permission, second = told(*STORY).spans
    assert (first.label, first.message_id, first.outcome) == ("provider/model", "m1", "tool_use")
    assert (tool.label, tool.tool_call_id, tool.message_id, tool.outcome) == ("bash", "c1", "m1", "")
    assert (permission.label, permission.outcome, permission.by) == ("bash: execute", "granted", "ada")
    assert (second.outcome, queue.outcome) == ("end_turn", "")


def test_tokens_go_to_the_answer_that_used_them() -> None:
    """Nobody could see which step was the dear one."""
    models = [span for span in told(*STORY).spans if span.kind == "model"]
    assert [(span.prompt_tokens, span.completion_tokens) for span in models] == [(100, 10), (150, 15)]


def test_what_goes_on_has_no_end() -> None:
    """A run that waits for a person would look as if it were over."""
    timeline = told(*STORY[:7])
    assert timeline.end == 0.0
    assert shown(timeline)[1:] == [("model", 3, 5), ("tool", 6, -1), ("permission", 6, -1)]


def test_a_run_that_waits_for_its_turn_shows_that() -> None:
    """It would look as if nothing had been asked."""
    assert shown(told(STORY[0])) == [("queue", 0, -1)]


def test_a_run_that_started_at_once_did_not_wait() -> None:
    """Each picture would begin with a bar that nobody can see."""
    assert shown(told(run(0, "accepted", change="created"), run(0.001, "running"), answer(1, "m1"))) == [
        ("model", 1, -1)
    ]


def test_calls_one_after_the_other_begin_when_they_are_first_heard_of() -> None:
    """Three calls of a second each would look as if the last had taken three."""
    facts = (
        *STORY[:4],
        answer(5, "m1", "c1", "c2", reason="tool_use"),
        notified(5.1, "c1", "granted", "policy"),
        result(6, "c1"),
        notified(6.1, "c2", "granted", "policy"),
        result(7, "c2", is_error=True),
    )
    tools = [span for span in told(*facts).spans if span.kind == "tool"]
    assert [(span.tool_call_id, round(span.start - T, 3), round(span.end - T, 3)) for span in tools] == [
        ("c1", 5.1, 6),
        ("c2", 6.1, 7),
    ]
    assert [span.outcome for span in tools] == ["", "error"]


def test_what_a_rule_allowed_was_no_waiting_for_people() -> None:
    """People would be shown as slow where nobody was asked."""
    facts = (*STORY[:5], notified(6, "c1", "granted", "policy"), result(7, "c1"))
    assert "permission" not in {span.kind for span in told(*facts).spans}


def test_a_question_is_a_span_of_its_own() -> None:
    """The time in which people thought would be the tool's."""
    batch = QuestionBatch("b1", "s1", "c1", (Question("q1", "yes_no", "Go on? " * 100),))
    facts = (
        *STORY[:5],
        fact(6, "question_batch_request", batch, "created"),
        fact(8, "question_batch_notification", QuestionNotification("b1", "answered", "s1", By("bob")), "created"),
        result(9, "c1"),
    )
    question = next(span for span in told(*facts).spans if span.kind == "question")
    assert (question.start, question.end, question.outcome, question.by) == (T + 6, T + 8, "answered", "bob")
    assert question.label.startswith("Go on?") and len(question.label) == limits.TIMELINE_LABEL_CHARACTERS


def test_a_cancel_ends_everything_that_goes_on() -> None:
    """Bars would go on for ever after the run."""
    facts = (*STORY[:7], notified(8, "c1", "withdrawn"), run(10, "canceled"))
    timeline = told(*facts)
    assert timeline.end == T + 10
    assert shown(timeline)[2:] == [("tool", 6, 10), ("permission", 6, 8)]


def test_our_own_last_word_is_no_answer_of_the_model() -> None:
    """A run that was cancelled before the model was asked would show a model that answered at once."""
    message = Message("m9", "assistant", "s1", [Finish(FinishData("canceled", 0))], "", "", 0, 0)
    facts = (STORY[0], fact(3, "message", message, "created"), run(3, "canceled"))
    assert shown(told(*facts)) == [("queue", 0, 3)]


def test_an_agent_that_was_started_can_be_gone_to() -> None:
    """One would have to guess which of ten sessions a call is about."""
    calls = [ToolCall(ToolCallData(call, "agent", "{}", True)) for call in ("c1", "c2", "c3")]
    message = Message("m1", "assistant", "s1", [*calls, Finish(FinishData("tool_use", 0))], "model", "", 0, 0)
    facts = (
        *STORY[:3],
        fact(5, "message", message),
        result(6, "c1", name="agent", metadata='[{"id":"ses_child","role":"general","state":"running"}]'),
        result(7, "c2", name="agent", metadata='[{"id":"a"},{"id":"b"}]'),
        result(8, "c3", name="agent", metadata="nonsense"),
    )
    tools = [span for span in told(*facts).spans if span.kind == "tool"]
    assert [span.session_id for span in tools] == ["ses_child", "", ""]


def test_of_a_trimmed_run_the_outline_is_left() -> None:
    """An old run would have no picture at all, or a wrong one that looks right (B41)."""
    facts = (
        answer(5, "m1", "c1", reason="tool_use", created_at=3),
        result(12, "c1"),
        answer(15, "m2", reason="end_turn", created_at=13),
        run(16, "completed", tokens=250),
    )
    timeline = told(*facts)
    assert (timeline.start, timeline.end, timeline.whole) == (T, T + 16, False)
    assert shown(timeline) == [("queue", 0, 2), ("model", 3, 5), ("tool", 5, 12), ("model", 13, 15)]
    assert not any(span.prompt_tokens for span in timeline.spans)  # all of them together belong to no one answer


def test_facts_that_were_left_out_are_said() -> None:
    """A picture of half a run would look like one of a short run."""
    assert not timeline_of(BASE, STORY, False).whole


# -- whatever comes ---------------------------------------------------------------------------------------------------

CALLS = ("c1", "c2", "c3")
CHANGES = st.one_of(
    st.builds(run, st.floats(-5, 50), st.sampled_from(["running", "waiting", "completed"]), tokens=st.integers(0, 99)),
    st.builds(answer, st.floats(-5, 50), st.sampled_from(["m1", "m2"])),
    st.builds(
        lambda at, id, calls: answer(at, id, *calls, reason="tool_use"),
        st.floats(-5, 50),
        st.sampled_from(["m1", "m2"]),
        st.lists(st.sampled_from(CALLS), unique=True),
    ),
    st.builds(result, st.floats(-5, 50), st.sampled_from(CALLS)),
    st.builds(asks, st.floats(-5, 50), st.sampled_from(CALLS)),
    st.builds(
        notified, st.floats(-5, 50), st.sampled_from(CALLS), st.sampled_from(["asked", "granted", "denied", "expired"])
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(CHANGES, max_size=25), st.booleans(), st.booleans())
def test_every_span_lies_where_it_belongs(facts: list[RunFact], whole: bool, over: bool) -> None:
    """A clock that was set, a trimmed log or an executor that says things twice would give a picture that lies."""
    facts = [run(0, "accepted", change="created")] * whole + facts + [run(40, "completed")] * over
    timeline = timeline_of(BASE, facts)
    latest = timeline.end or float("inf")
    calls = {span.tool_call_id: span for span in timeline.spans if span.kind == "tool"}
    for span in timeline.spans:
        assert timeline.start <= span.start <= latest
        assert span.end <= latest and (span.end >= span.start or (span.end == 0.0 and not timeline.end))
        if span.kind == "permission" and (call := calls.get(span.tool_call_id)):
            assert _within(span, call)
    asked = [
        part.data.id
        for fact in facts
        for part in getattr(fact.body, "parts", [])
        if part.type == "tool_call" and any(other.type == "finish" for other in fact.body.parts)  # type: ignore[union-attr]
    ]
    assert sorted(span.tool_call_id for span in timeline.spans if span.kind == "tool") == sorted(set(asked))
    assert timeline.spans == sorted(timeline.spans, key=lambda span: span.start)


def _within(inner: Span, outer: Span) -> bool:
    return outer.start <= inner.start and (not outer.end or outer.start <= inner.end <= outer.end)


def test_spans_are_bounded() -> None:
    """One run could make a browser draw for minutes (A38)."""
    many = [answer(number / 1000, f"m{number}") for number in range(limits.TIMELINE_SPANS + 10)]
    timeline = told(STORY[0], *many)
    assert len(timeline.spans) == limits.TIMELINE_SPANS and not timeline.whole


# -- from the disk ----------------------------------------------------------------------------------------------------


async def _play(stage: Stage) -> None:
    await stage.events.durable(MessageStart("msg_1", "assistant", "model", "provider"))
    stage.events.emit(UsageGained(Usage(7, 3), 0.0))
    await stage.events.durable(PartAdded("msg_1", ToolCall(ToolCallData("c1", "bash", "{}"))))
    await stage.events.durable(MessageEnd("msg_1", "tool_use"))
    data = ToolResultData("c1", "bash", "out", "", False)
    await stage.events.durable(MessageStart("msg_2", "tool", parts=[ToolResult(data)]))
    await stage.events.durable(MessageStart("msg_3", "assistant", "model", "provider"))
    await stage.events.durable(MessageEnd("msg_3", "end_turn"))


async def test_the_timeline_of_a_real_run_is_read_from_its_facts(tmp_path: Path) -> None:
    """The story above would be one that no run ever writes."""
    async with EngineWorld(tmp_path, Cast(root=_play)) as world:
        workspace = await world.open()
        _, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        timeline = await reading.timeline(workspace, run_id)
    assert timeline.whole and timeline.end
    assert [span.kind for span in timeline.spans] == ["model", "tool", "model"]
    assert timeline.spans[0].prompt_tokens == 7


async def test_the_timeline_of_a_run_that_was_trimmed_is_read_too(tmp_path: Path) -> None:
    """A run of last month would be answered with an error (B41)."""
    async with EngineWorld(tmp_path, Cast(root=_play)) as world:
        workspace = await world.open()
        _, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        before = await reading.timeline(workspace, run_id)
        world.journal.stage([Trim(workspace.id, workspace.log.head)])
        await world.journal.settled()
        after = await reading.timeline(workspace, run_id)
    assert not after.whole
    assert [span.kind for span in after.spans if span.kind != "queue"] == [span.kind for span in before.spans]
    assert round(after.end, 3) == round(before.end, 3)
