"""The lane, one rule at a time, in the words of the behaviours. All of it together is in `test_lane_exhaustive.py`."""

import pytest

from windlass import limits
from windlass.core.lane import Ending, Entry, Lane, Request
from windlass.errors import Conflict, NotFound, TooMany
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import OnBusy, Outcome, Run, Usage

ANN, BOB = By("ann"), By("bob")


def lane_with(*run_ids: str, running: bool = False) -> Lane:
    """A lane with these runs queued in order; with `running`, the first one is active."""
    lane = Lane("s1")
    for run_id in run_ids:
        prompt(lane, run_id)
    if running:
        start(lane)
    return lane


def prompt(lane: Lane, run_id: str, on_busy: OnBusy = "enqueue") -> Run:
    return lane.accept(Request(run_id, "hello", on_busy), ANN, "").run


def start(lane: Lane) -> str:
    head = lane.head()
    assert head is not None
    lane.start(head, "")
    return head.run.id


def end(lane: Lane, executor_says: Outcome = "completed") -> list[Fact]:
    entry = lane.active or lane.head()
    assert entry is not None
    return lane.finish(entry, Ending(lane.verdict(entry, executor_says), "m1", "text", "went wrong"), "")


def outcomes(facts: list[Fact]) -> list[tuple[str, str]]:
    return [(fact.run, fact.body.state) for fact in facts if fact.kind == "run" and fact.body.is_terminal]


def restarted(lane: Lane) -> Lane:
    """The lane as a restart builds it from the runs that are not over."""
    other = Lane("s1")
    for entry in lane.entries:
        other.restore(Entry(entry.run, entry.private))
    return other


def test_the_first_prompt_of_an_idle_session_is_told_that_it_starts() -> None:
    """Else a client shows "queued" for a prompt that nothing is ahead of (B01)."""
    lane = Lane("s1")
    run = prompt(lane, "r1")
    assert (run.disposition, run.state, lane.position("r1")) == ("started", "accepted", 0)


def test_a_prompt_on_a_busy_session_is_queued_behind_what_is_there() -> None:
    """Else a second prompt is lost or runs beside the first (B11 R7)."""
    lane = lane_with("r1", "r2", running=True)
    run = prompt(lane, "r3")
    assert (run.disposition, run.state, lane.position("r3")) == ("queued", "queued", 2)


def test_queued_prompts_start_in_the_order_they_were_accepted() -> None:
    """Else an answer comes before its question (B11 I4)."""
    lane = lane_with("r1", "r2", "r3")
    order = []
    while lane.is_busy:
        order.append(start(lane))
        end(lane)
    assert order == ["r1", "r2", "r3"]


def test_nothing_is_next_while_a_run_is_active() -> None:
    """Else two runs of a session write into one conversation (I2)."""
    assert lane_with("r1", "r2", running=True).head() is None


def test_a_failed_run_does_not_strand_the_queue_behind_it() -> None:
    """Else one provider error silences a session for ever (B11)."""
    lane = lane_with("r1", "r2", running=True)
    end(lane, "failed")
    assert start(lane) == "r2"


def test_a_cancel_right_after_the_202_ends_the_run_as_canceled() -> None:
    """Else a cancel that is faster than the start is lost (B04 R1)."""
    lane = lane_with("r1")
    lane.cancel(BOB)
    assert outcomes(end(lane)) == [("r1", "canceled")]


def test_a_covered_run_is_never_started() -> None:
    """Else a cancelled prompt calls the model all the same (B04)."""
    lane = lane_with("r1")
    lane.cancel(BOB)
    head = lane.head()
    assert head is not None
    with pytest.raises(AssertionError):
        lane.start(head, "")


def test_one_cancel_covers_the_active_run_and_everything_queued() -> None:
    """Else one cancel stops one of several runs, and the next begins to talk (B07 R4 R6)."""
    lane = lane_with("r1", "r2", "r3", running=True)
    assert lane.cancel(BOB).run_ids == ["r1", "r2", "r3"]
    assert [outcomes(end(lane)) for _ in range(3)] == [[(run_id, "canceled")] for run_id in ("r1", "r2", "r3")]


def test_a_prompt_accepted_after_a_cancel_is_not_touched_by_it() -> None:
    """Else "stop, do this instead" stops both (B07 R5 R10)."""
    lane = lane_with("r1", running=True)
    lane.cancel(BOB)
    prompt(lane, "r2")
    end(lane)
    start(lane)
    assert outcomes(end(lane)) == [("r2", "completed")]


def test_a_cancel_of_an_idle_session_does_nothing_at_all() -> None:
    """Else it is kept and kills the next prompt (B06 R3)."""
    lane = Lane("s1")
    cover = lane.cancel(BOB)
    prompt(lane, "r1")
    start(lane)
    assert (cover.run_ids, cover.facts, outcomes(end(lane))) == ([], [], [("r1", "completed")])


def test_a_second_cancel_says_the_same_and_writes_nothing_more() -> None:
    """Else two people who press stop at once fill the log, or the second is told an error (B08)."""
    lane = lane_with("r1", "r2", running=True)
    first, second = lane.cancel(ANN), lane.cancel(BOB)
    assert (second.run_ids, second.facts) == (first.run_ids, [])


def test_a_cancel_wins_over_an_executor_that_had_just_completed() -> None:
    """Else a cancel that was answered is lost between "finished" and "written" (R8 I5)."""
    lane = lane_with("r1", running=True)
    lane.cancel(BOB)
    assert outcomes(end(lane, "completed")) == [("r1", "canceled")]


def test_a_cancel_is_not_an_error() -> None:
    """Else clients show a red message for what the user asked for (B03)."""
    lane = lane_with("r1", running=True)
    lane.cancel(BOB)
    facts = end(lane, "failed")
    assert [fact.kind for fact in facts] == ["run", "run_complete"]
    assert (facts[-1].body.error, facts[-1].body.cancelled) == ("", True)


def test_a_failed_run_says_its_error_before_its_last_word() -> None:
    """Else people see that a run failed and not why (B10)."""
    facts = end(lane_with("r1", running=True), "failed")
    assert [fact.kind for fact in facts] == ["run", "agent_event", "run_complete"]


def test_cancel_of_one_run_touches_no_other() -> None:
    """Else removing one queued prompt stops the one that is being answered (B09 I6)."""
    lane = lane_with("r1", "r2", "r3", running=True)
    lane.cancel_run("r2", BOB)
    assert [entry.run.id for entry in lane.entries if lane.covered(entry)] == ["r2"]


def test_a_cancelled_run_in_the_queue_ends_at_its_place() -> None:
    """Else messages of a session come in an order nobody sent them in (B07 R15)."""
    lane = lane_with("r1", "r2", "r3", running=True)
    lane.cancel_run("r2", BOB)
    assert [outcomes(end(lane))[0], outcomes(end(lane))[0]] == [("r1", "completed"), ("r2", "canceled")]


def test_a_running_run_cannot_be_removed_from_the_queue() -> None:
    """Else a client that wanted to tidy the queue stops the answer it is reading (B13)."""
    lane = lane_with("r1", running=True)
    with pytest.raises(Conflict):
        lane.remove("r1", BOB)


def test_clearing_the_queue_leaves_the_active_run_alone() -> None:
    """Else "clear" means "stop everything" (B13)."""
    lane = lane_with("r1", "r2", "r3", running=True)
    assert lane.clear(BOB).run_ids == ["r2", "r3"]
    assert (outcomes(end(lane)), lane.queued) == ([("r1", "completed")], [])


def test_interrupt_covers_what_is_there_and_not_itself() -> None:
    """Else "do this instead" either waits for the old run or stops itself."""
    lane = lane_with("r1", "r2", running=True)
    acceptance = lane.accept(Request("r3", "hello", "interrupt"), BOB, "")
    assert acceptance.stopped == ["r1", "r2"]
    assert [entry.run.id for entry in lane.queued] == ["r3"]


def test_reject_refuses_a_busy_session_and_leaves_it_as_it_was() -> None:
    """Else a client that asked not to wait waits, or changes what it was refused by."""
    lane = lane_with("r1")
    with pytest.raises(Conflict):
        prompt(lane, "r2", "reject")
    assert [entry.run.id for entry in lane.entries] == ["r1"]


def test_a_full_queue_refuses_even_an_interrupt_and_cancels_nothing() -> None:
    """Else a loop of prompts takes all memory, or a refused prompt has an effect."""
    lane = lane_with(*(f"r{number}" for number in range(limits.QUEUE_PER_SESSION)))
    with pytest.raises(TooMany):
        prompt(lane, "one more", "interrupt")
    assert len(lane.queued) == limits.QUEUE_PER_SESSION


def test_a_steered_prompt_that_was_taken_ends_with_the_run_that_took_it() -> None:
    """Else its sender waits for ever for a run_complete (B14 R14)."""
    lane = lane_with("r1", running=True)
    steered = prompt(lane, "r2", "steer")
    lane.steer_taken("r2", "")
    assert (steered.disposition, steered.into) == ("steered", "r1")
    assert outcomes(end(lane)) == [("r1", "completed"), ("r2", "completed")]


def test_a_steered_prompt_that_was_not_taken_runs_by_itself_at_its_place() -> None:
    """Else a prompt that came a moment too late is never answered (B14)."""
    lane = lane_with("r1", "r2", running=True)
    prompt(lane, "r3", "steer")
    end(lane)
    assert [(entry.run.id, entry.run.into) for entry in lane.queued] == [("r2", ""), ("r3", "")]


def test_a_steered_prompt_that_was_cancelled_cannot_be_taken() -> None:
    """Else words that their writer took back reach the model (I5)."""
    lane = lane_with("r1", running=True)
    prompt(lane, "r2", "steer")
    lane.cancel_run("r2", ANN)
    assert lane.steer_taken("r2", "") is None


def test_cancel_of_a_run_does_not_cover_the_prompt_steered_into_it() -> None:
    """Else stopping one run loses a prompt that nobody stopped (I6)."""
    lane = lane_with("r1", running=True)
    prompt(lane, "r2", "steer")
    lane.cancel_run("r1", BOB)
    end(lane)
    assert start(lane) == "r2"


def test_a_covered_run_takes_no_steered_prompt() -> None:
    """Else a prompt nobody cancelled ends `canceled`, with the run that took it after its own cancel (I5 I6)."""
    lane = lane_with("r1", running=True)
    prompt(lane, "r2", "steer")
    lane.cancel_run("r1", BOB)
    assert lane.steer_taken("r2", "") is None


def test_a_run_that_waits_for_a_person_says_so_once() -> None:
    """Else nobody sees why nothing happens, or the log repeats it (B15)."""
    lane = lane_with("r1", running=True)
    states = [[fact.body.state for fact in lane.set_waiting("r1", waiting, ANN)] for waiting in (True, True, False)]
    assert states == [["waiting"], [], ["running"]]


def test_a_run_that_has_not_started_cannot_be_waiting() -> None:
    """Else a queued run looks as if it had asked somebody (B15)."""
    assert lane_with("r1").set_waiting("r1", True, ANN) == []


def test_what_a_run_gained_is_in_its_last_fact() -> None:
    """Else token use and cost are lost with the run (B16)."""
    lane = lane_with("r1", running=True)
    assert lane.active is not None
    for _ in range(2):
        lane.note(lane.active, message_id="m1", usage=Usage(prompt_tokens=3, completion_tokens=2), cost=0.5)
    run = end(lane)[0].body
    assert (run.usage, run.cost, run.message_ids) == (Usage(6, 4, 0), 1.0, ("m1", "m1"))


def test_a_restart_finds_the_running_run_active_and_the_queue_in_order() -> None:
    """Else a restart runs something twice, or forgets a prompt that was answered 202 (B13 I1)."""
    lane = restarted(lane_with("r1", "r2", "r3", running=True))
    assert lane.active is not None
    assert (lane.active.run.id, [entry.run.id for entry in lane.queued]) == ("r1", ["r2", "r3"])


def test_a_cancel_survives_a_restart() -> None:
    """Else a crash brings a cancelled run back to life (I5)."""
    lane = lane_with("r1", "r2", running=True)
    lane.cancel(BOB)
    assert outcomes(end(restarted(lane), "interrupted")) == [("r1", "canceled")]


def test_a_taken_steer_ends_with_its_taker_after_a_restart() -> None:
    """Else its message, which is in the conversation already, is asked a second time (R14)."""
    lane = lane_with("r1", running=True)
    prompt(lane, "r2", "steer")
    lane.steer_taken("r2", "")
    assert outcomes(end(restarted(lane), "interrupted")) == [("r1", "interrupted"), ("r2", "interrupted")]


def test_a_prompt_after_a_restart_comes_behind_what_was_restored() -> None:
    """Else messages of two runs stand in each other's place (I4)."""
    lane = restarted(lane_with("r1", "r2"))
    prompt(lane, "r3")
    assert [entry.number for entry in lane.entries] == [1, 2, 3]


@pytest.mark.parametrize("command", ["cancel_run", "remove"])
def test_a_run_that_is_not_here_is_not_found(command: str) -> None:
    """Else a mistyped id looks like a cancel that worked."""
    with pytest.raises(NotFound):
        getattr(Lane("s1"), command)("r1", ANN)
