"""Runs and those who drive them: what the workspace, the runner and recovery promise, taken out."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core.lane import Lane
from windlass.engine import workspace
from windlass.engine.registry import Registry
from windlass.engine.reservations import Reservations
from windlass.engine.runner import Runner
from windlass.engine.sessions import Sessions
from windlass.engine.workspace import Workspace
from windlass.wire.permissions import By
from windlass.wire.runs import Outcome


def let_the_task_write_its_end(patch: pytest.MonkeyPatch) -> None:
    """A run's own task reports how it ended: one that is cancelled before its first step never does (R16)."""

    async def run(runner: Runner, start_head: int) -> None:
        try:
            outcome: Outcome = "completed" if (await runner._execute(start_head)).status == "completed" else "failed"
        except asyncio.CancelledError:
            outcome = runner._stop_outcome
        except Exception:
            outcome = "failed"
        runner._finish(outcome, "", None)

    def drive(runner: Runner, start_head: int) -> Coroutine[Any, Any, Any]:
        runner.__dict__["_task"] = asyncio.create_task(run(runner, start_head))
        return asyncio.wait({runner.__dict__["_task"]})

    def stop(runner: Runner, outcome: Outcome = "canceled", reason: str = "") -> None:
        runner._stop_outcome = outcome
        runner.cancel.set()
        runner._stop.set()
        runner.__dict__["_task"].cancel()

    patch.setattr(Runner, "drive", drive)
    patch.setattr(Runner, "stop", stop)


def keep_the_handle_of_the_last_run(patch: pytest.MonkeyPatch) -> None:
    """A run that ends takes the place of the one that started after it: a cancel stops nobody (R8)."""
    finish_run = Workspace.finish_run

    def late(workspace: Workspace, lane: Lane, *rest: Any) -> None:
        last = workspace._runners[lane.session_id]
        finish_run(workspace, lane, *rest)
        if lane.session_id in workspace._runners:
            workspace._runners[lane.session_id] = last

    patch.setattr(Workspace, "finish_run", late)


def hear_covered_runs(patch: pytest.MonkeyPatch) -> None:
    """What a run says after its cancel is written like anything else."""
    patch.setattr(Runner, "_deaf", False)


def believe_a_stopped_executor(patch: pytest.MonkeyPatch) -> None:
    """An executor that was told to stop, and whose words were dropped, says that it completed."""
    judge = Runner._judge

    def trusting(runner: Runner, task: Any) -> Any:
        done = task.done() and not task.cancelled() and task.exception() is None
        return ("completed", "") if done and task.result().status == "completed" else judge(runner, task)

    patch.setattr(Runner, "_judge", trusting)


def call_the_model_before_the_start_is_on_disk(patch: pytest.MonkeyPatch) -> None:
    """A model is called for a run that a crash may take away (B04)."""
    execute = Runner._execute
    patch.setattr(Runner, "_execute", lambda runner, start_head: execute(runner, 0))


def look_up_without_reserving(patch: pytest.MonkeyPatch) -> None:
    """Two callers with one run_id both find nothing and both accept (R12)."""

    @asynccontextmanager
    async def at_once(reservations: Reservations, run_id: str) -> AsyncIterator[None]:
        yield

    patch.setattr(Reservations, "hold", at_once)


def share_the_reservation(patch: pytest.MonkeyPatch) -> None:
    """A caller that hangs up while it waits for another's run_id takes the other with it."""

    async def free(reservations: Reservations, run_id: str) -> None:
        while (held := reservations._held.get(run_id)) is not None:
            await held

    patch.setattr(Reservations, "_free", free)


def refuse_at_once(patch: pytest.MonkeyPatch) -> None:
    """A refusal does not wait for the disk: a caller is told of a run that a crash then takes away."""

    class Never(Exception):
        pass

    patch.setattr(workspace, "WindlassError", Never)


def look_once_for_a_run_to_cancel(patch: pytest.MonkeyPatch) -> None:
    """A run that is accepted while its cancel looks for it on the disk goes on."""
    cancel_run = Workspace.cancel_run

    async def once(workspace: Workspace, run_id: str, by: By) -> Any:
        if workspace._entry(run_id) is None:
            return (await workspace._ended_run(run_id)).state
        return await cancel_run(workspace, run_id, by)

    patch.setattr(Workspace, "cancel_run", once)


def delete_under_runs(patch: pytest.MonkeyPatch) -> None:
    """A session is deleted without waiting for its runs to end."""

    async def at_once(workspace: Workspace, lane: Lane) -> None:
        return None

    patch.setattr(Workspace, "_until_idle", at_once)


def accept_into_a_session_that_goes(patch: pytest.MonkeyPatch) -> None:
    """A prompt is accepted by a session that is being deleted, and goes with it."""
    patch.setattr(Sessions, "has", lambda sessions, session_id: session_id in sessions._sessions)


def leave_running_what_a_crash_left(patch: pytest.MonkeyPatch) -> None:
    """A run that was going on when the server was killed is called running for ever."""
    patch.setattr(Workspace, "interrupt", lambda workspace, *arguments: None)


def restart_without_recovery(patch: pytest.MonkeyPatch) -> None:
    """What was accepted before a crash waits until somebody opens its workspace again (B02)."""

    async def nothing(registry: Registry) -> int:
        return 0

    patch.setattr(Registry, "recover", nothing)


ABLATIONS = [
    Ablation(let_the_task_write_its_end, ("I1", "I19"), last_found=6),
    Ablation(keep_the_handle_of_the_last_run, ("I5",), last_found=17),
    Ablation(hear_covered_runs, ("I5",), last_found=4),
    Ablation(believe_a_stopped_executor, ("I3", "I7"), last_found=108),
    Ablation(call_the_model_before_the_start_is_on_disk, ("B04",)),
    Ablation(look_up_without_reserving, ("I8",)),
    Ablation(share_the_reservation, ("B02", "I19"), last_found=12),
    Ablation(refuse_at_once, ("I12",), last_found=42),
    Ablation(look_once_for_a_run_to_cancel, ("I5",), last_found=32),
    Ablation(delete_under_runs, ("I1", "I3", "I19"), last_found=71),
    Ablation(accept_into_a_session_that_goes, ("I1", "I3", "I19"), last_found=90),
    Ablation(leave_running_what_a_crash_left, ("I1",)),
    Ablation(restart_without_recovery, ("I1",)),
]
