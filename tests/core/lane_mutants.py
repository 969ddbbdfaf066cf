"""Lanes with one safeguard taken out each, to prove that the search would notice.

Each function takes the `patch` of a test, which puts everything back afterwards. `MUTANTS` names what has to be found.
"""

from collections.abc import Callable, Iterable

import msgspec
import pytest

from windlass.core.lane import Acceptance, Cover, Ending, Entry, Lane, Request
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import Outcome

Patch = pytest.MonkeyPatch


def nothing_is_ever_covered(patch: Patch) -> None:
    patch.setattr(Lane, "covered", lambda lane, entry: False)


def cancel_stops_only_the_active_run(patch: Patch) -> None:
    def cancel(lane: Lane, by: By) -> Cover:
        return lane._flag([lane.active] if lane.active else [], by)

    patch.setattr(Lane, "cancel", cancel)


def cancel_marks_in_memory_only(patch: Patch) -> None:
    original = Lane.cancel
    patch.setattr(Lane, "cancel", lambda lane, by: Cover(original(lane, by).run_ids, []))


def cancel_counts_one_too_few(patch: Patch) -> None:
    def cancel(lane: Lane, by: By) -> Cover:
        return Cover([entry.run.id for entry in lane.entries], lane._flag(lane.entries[:-1], by).facts)

    patch.setattr(Lane, "cancel", cancel)


def cancel_covers_the_future(patch: Patch) -> None:
    _keep_cancels(patch, lambda cancelled: cancelled > 0)


def cancel_is_kept_for_the_next_prompt(patch: Patch) -> None:
    _keep_cancels(patch, lambda cancelled: cancelled == 1)


def _keep_cancels(patch: Patch, hits: Callable[[int], bool]) -> None:
    """`hits` is told how many prompts after a cancel this one is: 1 for the next, 0 when there was no cancel."""
    cancel, accept = Lane.cancel, Lane.accept

    def kept(lane: Lane, by: By) -> Cover:
        lane.__dict__["since_cancel"] = 1
        return cancel(lane, by)

    def accepted(lane: Lane, request: Request, by: By, now: str) -> Acceptance:
        since = lane.__dict__.get("since_cancel", 0)
        acceptance = accept(lane, request, by, now)
        if since:
            lane.__dict__["since_cancel"] = since + 1
        covered = lane._flag([lane.entries[-1]], by).facts if hits(since) else []
        return msgspec.structs.replace(acceptance, facts=[*acceptance.facts, *covered])

    patch.setattr(Lane, "cancel", kept)
    patch.setattr(Lane, "accept", accepted)


def the_flag_is_kept_in_the_answer_only(patch: Patch) -> None:
    def cancel_run(lane: Lane, run_id: str, by: By) -> Cover:
        return Cover([run_id], [])

    patch.setattr(Lane, "cancel_run", cancel_run)


def cancel_run_covers_the_whole_lane(patch: Patch) -> None:
    patch.setattr(Lane, "cancel_run", lambda lane, run_id, by: lane._flag(lane.entries, by))


def clear_covers_the_active_run(patch: Patch) -> None:
    patch.setattr(Lane, "clear", lambda lane, by: lane._flag(lane.entries, by))


def the_executor_has_the_last_word(patch: Patch) -> None:
    patch.setattr(Lane, "verdict", lambda lane, entry, outcome: outcome)


def the_newest_starts_first(patch: Patch) -> None:
    def head(lane: Lane) -> Entry | None:
        return None if lane.active else next(reversed(lane.entries), None)

    patch.setattr(Lane, "head", head)


def pending_steers_are_left_behind(patch: Patch) -> None:
    def finish(lane: Lane, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        facts = lane._terminal(entry, ending, now)
        for other in lane.entries:
            if other.taken:
                facts += lane._terminal(other, lane._shared(other, ending), now)
        lane.active = None
        return facts

    patch.setattr(Lane, "finish", finish)


def taken_steers_are_not_ended(patch: Patch) -> None:
    def finish(lane: Lane, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        facts = lane._terminal(entry, ending, now)
        for other in lane.entries:
            if other.is_pending_steer:
                other.run = msgspec.structs.replace(other.run, into="")
                facts.append(lane._run_fact(other, by=other.by))
        lane.active = None
        return facts

    patch.setattr(Lane, "finish", finish)


def a_steered_run_shares_more_than_it_should(patch: Patch) -> None:
    patch.setattr(Lane, "_shared", lambda lane, steered, ending: ending)


def finish_forgets_to_free_the_lane(patch: Patch) -> None:
    original = Lane.finish

    def finish(lane: Lane, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        active = lane.active
        facts = original(lane, entry, ending, now)
        lane.active = active
        return facts

    patch.setattr(Lane, "finish", finish)


def an_ended_run_is_not_announced(patch: Patch) -> None:
    _change_facts(patch, "finish", lambda facts: [fact for fact in facts if fact.kind != "run_complete"])


def an_ended_run_is_announced_twice(patch: Patch) -> None:
    _change_facts(patch, "finish", lambda facts: [*facts, facts[-1]])


def a_fact_follows_the_last_word(patch: Patch) -> None:
    _change_facts(patch, "finish", lambda facts: [*facts[1:], facts[0]])


def a_start_is_not_written_down(patch: Patch) -> None:
    _change_facts(patch, "start", lambda facts: [])


def restore_forgets_who_was_running(patch: Patch) -> None:
    def restore(lane: Lane, entry: Entry) -> None:
        lane._entries[entry.run.id] = entry

    patch.setattr(Lane, "restore", restore)


def restore_forgets_who_was_taken(patch: Patch) -> None:
    original = Lane.restore

    def restore(lane: Lane, entry: Entry) -> None:
        original(lane, entry)
        entry.taken = False

    patch.setattr(Lane, "restore", restore)


def interrupt_only_queues(patch: Patch) -> None:
    original = Lane.accept

    def accept(lane: Lane, request: Request, by: By, now: str) -> Acceptance:
        if request.on_busy == "interrupt":
            request = msgspec.structs.replace(request, on_busy="enqueue")
        return original(lane, request, by, now)

    patch.setattr(Lane, "accept", accept)


def a_cancelled_steer_can_still_be_taken(patch: Patch) -> None:
    def pending_steers(lane: Lane, run_id: str) -> list[Entry]:
        return [e for e in lane.entries if e.is_pending_steer and e.run.into == run_id]

    patch.setattr(Lane, "pending_steers", pending_steers)


def the_verdict_is_canceled_if_any_run_is_covered(patch: Patch) -> None:
    def verdict(lane: Lane, entry: Entry, outcome: Outcome) -> Outcome:
        return "canceled" if lane.covered(entry) or any(map(lane.covered, lane.entries)) else outcome

    patch.setattr(Lane, "verdict", verdict)


def _change_facts(patch: Patch, method: str, change: Callable[[list[Fact]], Iterable[Fact]]) -> None:
    original = getattr(Lane, method)

    def changed(lane: Lane, *arguments: object) -> list[Fact]:
        return list(change(original(lane, *arguments)))

    patch.setattr(Lane, method, changed)


MUTANTS: dict[Callable[[Patch], None], str] = {
    nothing_is_ever_covered: "I5",
    cancel_stops_only_the_active_run: "I5",
    cancel_marks_in_memory_only: "I1",
    cancel_counts_one_too_few: "R4",
    cancel_covers_the_future: "R10",
    cancel_is_kept_for_the_next_prompt: "R10",
    the_flag_is_kept_in_the_answer_only: "I6",
    cancel_run_covers_the_whole_lane: "I6",
    clear_covers_the_active_run: "I5",
    the_executor_has_the_last_word: "R8",
    the_newest_starts_first: "I4",
    pending_steers_are_left_behind: "B14",
    taken_steers_are_not_ended: "R14",
    a_steered_run_shares_more_than_it_should: "I6",
    finish_forgets_to_free_the_lane: "I2",
    an_ended_run_is_not_announced: "B10",
    an_ended_run_is_announced_twice: "I3",
    a_fact_follows_the_last_word: "I3",
    a_start_is_not_written_down: "I2",
    restore_forgets_who_was_running: "I2",
    restore_forgets_who_was_taken: "R14",
    interrupt_only_queues: "I5",
    a_cancelled_steer_can_still_be_taken: "B14",
    the_verdict_is_canceled_if_any_run_is_covered: "I5",
}
