"""What a lane's facts tell: of whom, when, and how much of it. The order of things is in `test_lane.py`."""

import pytest

from windlass import limits
from windlass.core.lane import Ending, Entry, Lane, Request
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import AgentEvent, Attachment, OnBusy, Outcome, RunComplete, Usage

ANN, BOB = By("ann"), By("bob")
PHOTO = Attachment("a.png", "a.png", "image/png", "aGk=")
ENDING = Ending("completed", "m1", "the answer", "went wrong")


def prompt(lane: Lane, run_id: str = "r1", on_busy: OnBusy = "enqueue", text: str = "hello") -> Fact:
    """Accept a prompt; returns its fact."""
    return lane.accept(Request(run_id, text, on_busy, attachments=[PHOTO]), ANN, "accepted").facts[-1]


def started(lane: Lane) -> Entry:
    head = lane.head()
    assert head is not None
    lane.start(head, "started")
    return head


def test_an_accepted_prompt_keeps_everything_it_came_with() -> None:
    """Else a restart runs another prompt than the one that was acknowledged (I1 B46)."""
    request = Request("r1", "hello", "enqueue", 7, "digest", [PHOTO], "high", "the model")
    (fact,) = Lane("s1", 5).accept(request, ANN, "now").facts
    assert (fact.kind, fact.change, fact.by, fact.session, fact.run, fact.key) == (
        "run",
        "created",
        ANN,
        "s1",
        "r1",
        "r1",
    )
    run, private = fact.body, fact.private
    assert (run.id, run.session_id, run.prompt, run.created_at) == ("r1", "s1", "hello", "now")
    assert (run.message_ids, run.usage, run.cost, run.cancel_requested) == ((), Usage(), 0.0, False)
    assert (private.number, private.order, private.by, private.digest) == (5, 7, ANN, "digest")
    assert (private.attachments, private.reasoning_effort, private.model) == ([PHOTO], "high", "the model")


def test_a_prompt_that_says_nothing_more_is_queued_and_leaves_the_rest_to_the_config() -> None:
    """Else a plain prompt interrupts what runs, or asks for a model that does not exist."""
    request = Request("r1", "hello")
    assert (request.on_busy, request.order, request.digest, request.attachments) == ("enqueue", 0, "", [])
    assert (request.reasoning_effort, request.model) == ("", "")


def test_prompts_are_numbered_from_one_without_a_gap() -> None:
    """Else the messages of two runs share a place in the conversation (B04)."""
    lane = Lane("s1")
    assert [prompt(lane, f"r{n}").private.number for n in range(3)] == [1, 2, 3]
    assert [lane.position(f"r{n}") for n in range(3)] == [0, 1, 2]
    assert [lane.position("unknown"), lane.accept(Request("r9", ""), ANN, "").position] == [0, 3]


def test_a_start_and_an_end_say_when_and_whose_run_it_was() -> None:
    """Else nobody can tell how long a run took, or who asked for it (B46)."""
    lane = Lane("s1")
    prompt(lane)
    (start,) = lane.start(lane.head(), "started")  # type: ignore[arg-type]
    assert lane.active is not None
    end, last = lane.finish(lane.active, ENDING, "ended")
    assert [(fact.change, fact.by, fact.session, fact.run, fact.key) for fact in (start, end, last)] == [
        ("updated", ANN, "s1", "r1", "r1"),
        ("updated", ANN, "s1", "r1", "r1"),
        ("created", ANN, "s1", "r1", ""),
    ]
    assert (start.body.state, start.body.started_at, start.body.ended_at) == ("running", "started", "")
    assert (end.body.state, end.body.started_at, end.body.ended_at) == ("completed", "started", "ended")
    assert last.body == RunComplete("s1", "r1", "m1", "the answer")


@pytest.mark.parametrize(
    ("outcome", "error", "is_told"),
    [("completed", "", False), ("failed", "went wrong", True), ("interrupted", "went wrong", False)],
)
def test_only_what_went_wrong_has_an_error(outcome: Outcome, error: str, is_told: bool) -> None:
    """Else people are shown an error of a run that is fine, or none of one that is not (B10)."""
    lane = Lane("s1")
    prompt(lane)
    facts = lane.finish(started(lane), Ending(outcome, "m1", "text", "went wrong"), "")
    assert (facts[0].body.error, facts[-1].body.error, facts[-1].body.cancelled) == (error, error, False)
    events = [(fact.change, fact.by, fact.session, fact.run, fact.body) for fact in facts if fact.kind == "agent_event"]
    expected = [("created", ANN, "s1", "r1", AgentEvent("error", "s1", "r1", "went wrong"))]
    assert events == (expected if is_told else [])


def test_a_cancel_is_written_as_the_one_who_asked_for_it() -> None:
    """Else nobody can tell who stopped a run (B46)."""
    lane = Lane("s1")
    prompt(lane)
    (fact,) = lane.cancel(BOB).facts
    assert (fact.by, fact.change, fact.body.cancel_requested, fact.private.by) == (BOB, "updated", True, ANN)
    for run_id in ("r2", "r3", "r4"):
        prompt(lane, run_id)
    covers = [lane.cancel_run("r2", BOB), lane.remove("r3", BOB), lane.clear(BOB)]
    assert [(fact.run, fact.by) for cover in covers for fact in cover.facts] == [("r2", BOB), ("r3", BOB), ("r4", BOB)]


def test_an_interrupt_says_what_it_stopped_before_it_says_that_it_waits() -> None:
    """Else a reader sees the new prompt ahead of the cancel that makes room for it."""
    lane = Lane("s1")
    prompt(lane, "r1")
    acceptance = lane.accept(Request("r2", "now", "interrupt"), BOB, "")
    assert [(fact.run, fact.by, fact.body.cancel_requested) for fact in acceptance.facts] == [
        ("r1", BOB, True),
        ("r2", BOB, False),
    ]
    assert (acceptance.stopped, acceptance.position, acceptance.run.disposition) == (["r1"], 1, "queued")
    assert Lane("s2").accept(Request("r3", ""), ANN, "").stopped == []


def test_a_steered_prompt_knows_into_what_and_is_queued_once_that_is_over() -> None:
    """Else a client waits beside a run that has ended for a prompt that runs by itself (B14)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    active = started(lane)
    steered = prompt(lane, "r2", "steer").body
    assert (steered.disposition, steered.into, steered.state) == ("steered", "r1", "queued")
    released = lane.finish(active, ENDING, "ended")[-1]
    assert (released.by, released.body.disposition, released.body.into) == (ANN, "queued", "")


def test_a_steered_prompt_that_was_taken_says_when_and_ends_with_the_same_answer() -> None:
    """Else whoever steered is never told what came of it (B14)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    active = started(lane)
    prompt(lane, "r2", "steer")
    (taken,) = lane.steer_taken("r2", "taken") or []
    assert (taken.by, taken.body.state, taken.body.started_at) == (ANN, "running", "taken")
    facts = lane.finish(active, ENDING, "ended")
    assert [fact.body.ended_at for fact in facts if fact.kind == "run"] == ["ended", "ended"]
    assert facts[-1].body == RunComplete("s1", "r2", "m1", "the answer")


def test_a_steered_prompt_that_was_cancelled_ends_so_without_the_answer_of_its_run() -> None:
    """Else a person who took a prompt back is shown the answer to it (I6)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    active = started(lane)
    prompt(lane, "r2", "steer")
    lane.steer_taken("r2", "")
    lane.cancel_run("r2", BOB)
    last = lane.finish(active, ENDING, "")[-1]
    assert last.body == RunComplete("s1", "r2", "m1", cancelled=True)


def test_a_steered_prompt_that_is_cancelled_with_its_run_ends_as_that_does() -> None:
    """Else two who were stopped by one cancel are told two different things (B14)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    active = started(lane)
    prompt(lane, "r2", "steer")
    lane.steer_taken("r2", "")
    lane.cancel(BOB)
    facts = lane.finish(active, Ending("canceled", "m1", "as far as it came"), "")
    told = [fact.body for fact in facts if fact.kind == "run_complete"]
    assert told == [RunComplete("s1", id, "m1", "as far as it came", cancelled=True) for id in ("r1", "r2")]


def test_what_a_run_gained_adds_up() -> None:
    """Else people are shown a price that is not what they pay (B17)."""
    lane = Lane("s1")
    prompt(lane)
    entry = started(lane)
    lane.note(entry, message_id="m1")
    lane.note(entry, usage=Usage(1, 20, 300), cost=0.5)
    lane.note(entry, message_id="m2", usage=Usage(4, 50, 600), cost=0.25)
    (fact,) = lane.progress(entry)
    assert (fact.by, fact.body.message_ids, fact.body.usage, fact.body.cost) == (
        ANN,
        ("m1", "m2"),
        Usage(5, 70, 900),
        0.75,
    )
    lane.note(entry, usage=Usage())
    assert entry.run.cost == 0.75


def test_a_run_that_waits_says_so_as_the_one_whom_it_waits_for_is_told() -> None:
    """Else a person is not shown that the run stopped because of them, or by whom it goes on (B15 B46)."""
    lane = Lane("s1")
    prompt(lane)
    started(lane)
    facts = [*lane.set_waiting("r1", True, ANN), *lane.set_waiting("r1", False, BOB)]
    assert [(fact.by, fact.body.state) for fact in facts] == [(ANN, "waiting"), (BOB, "running")]
    assert lane.set_waiting("unknown", True, ANN) == []


@pytest.mark.parametrize(("length", "shown"), [(0, 0), (-1, -1), (1, 0)])
def test_a_long_prompt_is_whole_until_it_starts_and_then_shortened(length: int, shown: int) -> None:
    """Else a long prompt is on disk once more for each change of its run, or lost before it starts (B45)."""
    bound = limits.RUN_PROMPT_CHARACTERS
    lane, text = Lane("s1"), "x" * (bound + length)
    assert prompt(lane, text=text).body.prompt == text
    (fact,) = lane.start(lane.head(), "")  # type: ignore[arg-type]
    assert len(fact.body.prompt) == bound + shown
    assert fact.body.prompt == (text if length <= 0 else "x" * (bound - 1) + "…")


def test_the_rules_of_a_prompt_are_on_disk_until_its_run_starts() -> None:
    """Else a restart forgets those of a queued run (B13), or a hundred long rules are in the log with every change of
    a run that no restart goes on with (B45). Who executes it still has them."""
    lane = Lane("s1")
    waiting = lane.accept(Request("r1", "go", max_cost=0.5, allow=["bash:make*"]), ANN, "").facts[-1]
    entry = lane.entries[0]
    (start,) = lane.start(entry, "")
    assert (waiting.private.allow, waiting.private.max_cost) == (["bash:make*"], 0.5)
    assert (start.private.allow, start.private.max_cost, entry.private.allow) == ([], 0.5, ["bash:make*"])


def test_attachments_are_kept_until_the_run_starts() -> None:
    """Else a photo is on disk once more for each change of its run, or lost in a restart before it (B45 I1)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    waiting = prompt(lane, "r2")
    (start,) = lane.start(lane.head(), "")  # type: ignore[arg-type]
    assert (start.private.attachments, waiting.private.attachments) == ([], [PHOTO])
    (cancelled,) = lane.cancel_run("r2", ANN).facts
    assert cancelled.private.attachments == [PHOTO]
    assert (start.private.number, start.private.by) == (1, ANN)


def test_what_waits_is_neither_running_nor_taken_nor_cancelled() -> None:
    """Else the queue that people are shown holds what will never run from it (B16)."""
    lane = Lane("s1")
    prompt(lane, "r1")
    started(lane)
    for run_id, on_busy in (("r2", "steer"), ("r3", "steer"), ("r4", "enqueue"), ("r5", "enqueue")):
        prompt(lane, run_id, on_busy)  # type: ignore[arg-type]
    lane.steer_taken("r2", "")
    lane.cancel_run("r4", ANN)
    assert [entry.run.id for entry in lane.queued] == ["r3", "r5"]
    assert [entry.run.id for entry in lane.pending_steers("r1")] == ["r3"]
    assert lane.pending_steers("r9") == []


def test_numbers_go_on_after_the_highest_that_a_restart_found() -> None:
    """Else a new prompt stands in the conversation before older ones (B04)."""
    old = Lane("s1", 3)
    prompt(old, "r1")
    prompt(old, "r2")
    for next_number, expected in ((1, 5), (9, 9)):
        lane = Lane("s1", next_number)
        for entry in old.entries:
            lane.restore(Entry(entry.run, entry.private))
        assert prompt(lane, "r3").private.number == expected


def test_a_covered_run_cannot_be_started_nor_one_end_as_if_it_were_not() -> None:
    """Else a mistake elsewhere becomes a run that a person had stopped (I5)."""
    lane = Lane("s1")
    prompt(lane)
    entry = started(lane)
    with pytest.raises(AssertionError):
        lane.start(entry, "")
    lane.cancel(BOB)
    with pytest.raises(AssertionError):
        lane.finish(entry, ENDING, "")
    assert lane.finish(entry, Ending("canceled"), "")[-1].body == RunComplete("s1", "r1", "", cancelled=True)
    with pytest.raises(AssertionError):
        lane.finish(entry, Ending("canceled"), "")
