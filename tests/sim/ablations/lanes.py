"""Cancels and the order of runs: what the lane promises, taken out."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core import lane as lane_module
from windlass.core.lane import Acceptance, Ending, Entry, Lane, Request
from windlass.engine.workspace import Workspace
from windlass.wire.events import Fact
from windlass.wire.permissions import By


def end_as_the_executor_says(patch: pytest.MonkeyPatch) -> None:
    """Who ends a run does not look for a cancel: one between the executor's end and the run's is lost (R8)."""
    patch.setattr(Lane, "verdict", lambda lane, entry, outcome: outcome)


def start_what_is_covered(patch: pytest.MonkeyPatch) -> None:
    """A cancel covers only what has started: one that comes after the 202 and before the start is lost (R1)."""
    covered = Lane.covered

    def covers(lane: Lane, entry: Entry) -> bool:
        return covered(lane, entry) and entry.run.state not in ("accepted", "queued")

    patch.setattr(Lane, "covered", covers)


def cancel_only_the_active_run(patch: pytest.MonkeyPatch) -> None:
    """A cancel covers the run that is going on and nothing that was accepted behind it (R4, R6)."""

    def cancel(lane: Lane, by: By) -> Any:
        return lane._flag([lane.active] if lane.active is not None else [], by)

    patch.setattr(Lane, "cancel", cancel)


def lose_the_run_while_it_starts(patch: pytest.MonkeyPatch) -> None:
    """Between its start and its first step a run is nowhere: a cancel does not find it (R9)."""

    def cancel(workspace: Workspace, lane: Lane, by: By) -> list[str]:
        starting = [entry for entry in lane.entries if entry is lane.active and not _is_seen_running(workspace, entry)]
        found = [entry for entry in lane.entries if entry not in starting]
        return workspace._cover(lane, lane._flag(found, by), by)

    patch.setattr(Workspace, "_cancel", cancel)


def _is_seen_running(workspace: Workspace, entry: Entry) -> bool:
    body = workspace.log.runs.get(entry.run.id)
    return body is not None and b'"state":"running"' in bytes(body)


def cancel_the_future_too(patch: pytest.MonkeyPatch) -> None:
    """A cancel is sticky: it also hits the next prompt (R3, R5, R10)."""
    cancel, accept = Lane.cancel, Lane.accept

    def sticky(lane: Lane, by: By) -> Any:
        lane.__dict__["sticky"] = True
        return cancel(lane, by)

    def accepted(lane: Lane, request: Request, by: By, now: str) -> Acceptance:
        hit = lane.__dict__.pop("sticky", False)
        acceptance = accept(lane, request, by, now)
        flags = lane.cancel_run(request.run_id, by).facts if hit else []
        return msgspec.structs.replace(acceptance, facts=[*acceptance.facts, *flags])

    patch.setattr(Lane, "cancel", sticky)
    patch.setattr(Lane, "accept", accepted)


def look_then_cancel_the_session(patch: pytest.MonkeyPatch) -> None:
    """Cancelling one run looks whether it is going on, and then stops whatever is going on (I6)."""

    async def cancel_run(workspace: Workspace, run_id: str, by: By) -> Any:
        run = await workspace._ended_run(run_id)
        if run.is_terminal:
            return run.state
        workspace._cancel(workspace._lanes[run.session_id], by)
        await workspace.log.durable(workspace.log.head)
        return run.state

    patch.setattr(Workspace, "cancel_run", cancel_run)


def take_a_cancelled_steer(patch: pytest.MonkeyPatch) -> None:
    """A run takes a steered prompt that was cancelled meanwhile."""

    def pending_steers(lane: Lane, run_id: str) -> list[Entry]:
        return [entry for entry in lane.entries if entry.is_pending_steer and entry.run.into == run_id]

    patch.setattr(Lane, "pending_steers", pending_steers)


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


def forget_cancels_in_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A restart does not see the cancels that were answered before it."""
    restore = Lane.restore

    def forgetful(lane: Lane, entry: Entry) -> None:
        entry.run = msgspec.structs.replace(entry.run, cancel_requested=False)
        restore(lane, entry)

    patch.setattr(Lane, "restore", forgetful)


def accept_beyond_the_bound(patch: pytest.MonkeyPatch) -> None:
    """A session's queue has no bound: one client can fill the server's memory."""
    unbounded = SimpleNamespace(QUEUE_PER_SESSION=1_000_000, RUN_PROMPT_CHARACTERS=8)
    patch.setattr(lane_module, "limits", unbounded)


ABLATIONS = [
    Ablation(end_as_the_executor_says, ("I5",), last_found=12),
    Ablation(start_what_is_covered, ("I5",)),
    Ablation(cancel_only_the_active_run, ("I5",), last_found=4),
    Ablation(lose_the_run_while_it_starts, ("I5",), last_found=4),
    Ablation(cancel_the_future_too, ("I5",), last_found=1),
    Ablation(look_then_cancel_the_session, ("I5",)),
    Ablation(take_a_cancelled_steer, ("I5",), last_found=31),
    Ablation(leave_steers_where_they_are, ("I1", "I3", "I7"), last_found=8),
    Ablation(forget_cancels_in_a_restart, ("I5",)),
    Ablation(accept_beyond_the_bound, ("bound",), last_found=7),
]
