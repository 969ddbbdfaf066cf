"""Safeguards taken out, one at a time: with each the simulation must find a violation, or it proves nothing.

An ablation patches the real code through pytest's monkeypatch and names the invariants whose violation shows that it
was found.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from windlass.core.claims import Claims, Hold
from windlass.core.lane import Ending, Entry, Lane
from windlass.core.permissions import Permissions
from windlass.engine import workspace
from windlass.engine.desk import Desk
from windlass.engine.registry import Registry
from windlass.engine.reservations import Reservations
from windlass.engine.runner import Runner
from windlass.engine.subscription import Subscription
from windlass.engine.workspace import Workspace
from windlass.journal import sqlite
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.records import Trim
from windlass.testing import sim_world
from windlass.wire.events import Fact


class Ablation(NamedTuple):
    """`last_found` is the seed that found it last: tried first, to save time, not to prove anything."""

    remove: Callable[[pytest.MonkeyPatch], None]
    found_by: tuple[str, ...]
    last_found: int = 0


def end_as_the_executor_says(patch: pytest.MonkeyPatch) -> None:
    """The end of a run is not compared with the mark: a cancel between the executor's end and the run's is lost."""
    patch.setattr(Lane, "verdict", lambda lane, entry, outcome: outcome)


def start_what_is_covered(patch: pytest.MonkeyPatch) -> None:
    """A cancel covers only what has started: one that comes after the 202 and before the start is lost (R1)."""
    covered = Lane.covered

    def covers(lane: Lane, entry: Entry) -> bool:
        return covered(lane, entry) and entry.run.state not in ("accepted", "queued")

    patch.setattr(Lane, "covered", covers)


def cancel_the_future_too(patch: pytest.MonkeyPatch) -> None:
    """A cancel is sticky: it also hits the next prompt (R3, R5)."""
    cancel = Lane.cancel

    def sticky(lane: Lane, by: Any) -> Any:
        cover = cancel(lane, by)
        lane.mark += 1
        return cover

    patch.setattr(Lane, "cancel", sticky)


def publish_at_append(patch: pytest.MonkeyPatch) -> None:
    """Readers see facts before they are on disk."""
    append = Log.append

    def visible(log: Log, facts: Any) -> int:
        head = append(log, facts)
        log._publish(head)
        return head

    patch.setattr(Log, "append", visible)


def answer_before_durable(patch: pytest.MonkeyPatch) -> None:
    """Callers are answered before what they are told is on disk."""

    async def at_once(log: Log, seq: int) -> None:
        return None

    patch.setattr(Log, "durable", at_once)


def let_old_timers_act(patch: pytest.MonkeyPatch) -> None:
    """A hold's timer does not carry its identity: it ends whatever claim its client has now (R30, R31)."""

    def expire(claims: Claims, hold: Hold) -> bool:
        return claims._clients.pop(hold.client_id, None) is not None

    patch.setattr(Claims, "expire", expire)


def resume_one_too_far(patch: pytest.MonkeyPatch) -> None:
    """A reader that comes back goes on one fact too late."""
    position = Subscription._position

    def skipping(subscription: Subscription, cursor: Any) -> tuple[int, str]:
        after, problem = position(subscription, cursor)
        behind = after < subscription._workspace.log.published
        return (after + 1 if behind else after), problem

    patch.setattr(Subscription, "_position", skipping)


def answer_twice(patch: pytest.MonkeyPatch) -> None:
    """An answer does not take the request away: a second one wins too (R43)."""
    resolve = Permissions.resolve

    def again(permissions: Permissions, request_id: str, action: Any, by: Any) -> Any:
        pending = permissions.pending.get(request_id)
        settled = resolve(permissions, request_id, action, by)
        if pending is not None:
            permissions.pending[request_id] = pending
        return settled

    patch.setattr(Permissions, "resolve", again)


def leave_steers_where_they_are(patch: pytest.MonkeyPatch) -> None:
    """A steered prompt whose run ended first does not become an ordinary one."""
    finish = Lane.finish

    def forgetful(lane: Lane, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        waiting = {other.run.id: other.run for other in lane.entries if other.run.into == entry.run.id}
        facts = finish(lane, entry, ending, now)
        for other in lane.entries:
            other.run = waiting.get(other.run.id, other.run)
        return [fact for fact in facts if fact.key not in {other.run.id for other in lane.entries}]

    patch.setattr(Lane, "finish", forgetful)


def look_up_without_reserving(patch: pytest.MonkeyPatch) -> None:
    """Two callers with one run_id both find nothing and both accept (R12)."""

    @asynccontextmanager
    async def at_once(reservations: Reservations, run_id: str) -> AsyncIterator[None]:
        yield

    patch.setattr(Reservations, "hold", at_once)


def hear_covered_runs(patch: pytest.MonkeyPatch) -> None:
    """What a run says after its cancel is written like anything else."""
    patch.setattr(Runner, "_deaf", False)


def keep_questions_of_ended_runs(patch: pytest.MonkeyPatch) -> None:
    """A cancelled run's question is not withdrawn."""
    patch.setattr(Desk, "withdraw", lambda desk, run_ids, by: [])


def close_under_runs(patch: pytest.MonkeyPatch) -> None:
    """Only claims keep a workspace open, runs do not."""
    patch.setattr(Workspace, "is_needed", property(lambda workspace: workspace.claims.held))


def split_endings(patch: pytest.MonkeyPatch) -> None:
    """What was staged together is not committed together: a crash leaves half an ending."""
    stage = Journal.stage

    def one_by_one(journal: Journal, records: Any) -> None:
        for record in records:
            stage(journal, [record])

    patch.setattr(Journal, "stage", one_by_one)
    patch.setitem(sim_world.SMALL_LIMITS, "COMMIT_FACTS", 1)


def trim_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Trimming also takes the newest fact of a key: the view can no longer be rebuilt."""

    def everything(connection: Any, record: Trim) -> None:
        key = record.workspace, record.floor
        connection.execute("DELETE FROM facts WHERE workspace = ? AND seq <= ?", key)
        connection.execute("UPDATE workspaces SET floor = ?2 WHERE id = ?1 AND floor < ?2", key)

    patch.setattr(sqlite, "trim", everything)


def show_text_before_its_fact(patch: pytest.MonkeyPatch) -> None:
    """Text that was said after a fact joins the piece that was staged before it."""

    class Kept(dict[Any, Any]):
        def clear(self) -> None:
            pass

    created = Log.__init__

    def init(log: Log, *arguments: Any) -> None:
        created(log, *arguments)
        log._open_deltas = Kept()

    patch.setattr(Log, "__init__", init)


# -- what the simulation found in this code, taken out again --------------------------------------------------------


def refuse_at_once(patch: pytest.MonkeyPatch) -> None:
    """A refusal does not wait for the disk: a caller is told of a run that a crash then takes away."""

    class Never(Exception):
        pass

    patch.setattr(workspace, "WindlassError", Never)


def believe_a_stopped_executor(patch: pytest.MonkeyPatch) -> None:
    """An executor that was told to stop, and whose words were dropped, says that it completed."""
    judge = Runner._judge

    def trusting(runner: Runner, task: Any) -> Any:
        done = task.done() and not task.cancelled() and task.exception() is None
        return ("completed", "") if done and task.result().status == "completed" else judge(runner, task)

    patch.setattr(Runner, "_judge", trusting)


def forget_what_was_opened(patch: pytest.MonkeyPatch) -> None:
    """A caller that hangs up while a workspace is being opened leaves it open for ever."""
    patch.setattr(Registry, "_opened", lambda registry, task: None)


def share_the_reservation(patch: pytest.MonkeyPatch) -> None:
    """A caller that hangs up while it waits for another's run_id takes the other's callers with it."""

    async def free(reservations: Reservations, run_id: str) -> None:
        while (held := reservations._held.get(run_id)) is not None:
            await held

    patch.setattr(Reservations, "_free", free)


ABLATIONS = {
    "end as the executor says": Ablation(end_as_the_executor_says, ("I5",)),
    "start what is covered": Ablation(start_what_is_covered, ("I5",)),
    "cancel the future too": Ablation(cancel_the_future_too, ("I5",)),
    "publish at append": Ablation(publish_at_append, ("I12",)),
    "answer before durable": Ablation(answer_before_durable, ("I1", "I12")),
    "let old timers act": Ablation(let_old_timers_act, ("I17",)),
    "resume one too far": Ablation(resume_one_too_far, ("I13",)),
    "answer twice": Ablation(answer_twice, ("I9",)),
    "leave steers where they are": Ablation(leave_steers_where_they_are, ("I1", "I3", "I7"), last_found=28),
    "look up without reserving": Ablation(look_up_without_reserving, ("I8",)),
    "hear covered runs": Ablation(hear_covered_runs, ("I5",)),
    "keep questions of ended runs": Ablation(keep_questions_of_ended_runs, ("I9", "I11")),
    "close under runs": Ablation(close_under_runs, ("I17",)),
    "split endings": Ablation(split_endings, ("I3", "I7")),
    "trim the snapshot": Ablation(trim_the_snapshot, ("I15",)),
    "show text before its fact": Ablation(show_text_before_its_fact, ("I16",)),
    "refuse at once": Ablation(refuse_at_once, ("I12",)),
    "believe a stopped executor": Ablation(believe_a_stopped_executor, ("I3", "I7"), last_found=130),
    "forget what was opened": Ablation(forget_what_was_opened, ("I17",), last_found=136),
    "share the reservation": Ablation(share_the_reservation, ("B02",), last_found=156),
}
