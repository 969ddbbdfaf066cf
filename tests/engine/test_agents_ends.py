"""Whatever goes wrong while a family ends, it ends: every run once, in time, and nothing of it is left at work."""

import asyncio
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvloop
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld
from own_worktrees import BUILDERS, OwnWorktrees
from structlog.testing import capture_logs

from windlass.config import AgentsConfig, Config
from windlass.engine.workspace import Workspace
from windlass.errors import JournalPoisoned
from windlass.fleet.mailbox.mailroom import Mailroom
from windlass.fleet.store.store import Store
from windlass.fleet.worktree.git import WorktreeError
from windlass.journal.sqlite import SqliteBackend
from windlass.wire.delegation import StartAgent, WaitForAgents
from windlass.wire.http import Prompt

FAMILIES = 40  # of which a good part would be missed


async def at_once(stage: Stage) -> None:
    """A player with nothing to do."""


@pytest.mark.parametrize("error", [WorktreeError("git add failed"), RuntimeError("a bug"), OSError("no space left")])
async def test_a_worktree_that_cannot_be_settled_does_not_keep_its_run_from_ending(
    tmp_path: Path, error: Exception
) -> None:
    """I3: the agent and everything above it would be busy for ever, and no cancel could end them."""

    async def fail() -> None:
        raise error

    async def root(stage: Stage) -> None:
        await stage.start("child", role="builder")
        await stage.events.delegate(WaitForAgents())

    cast = Cast(root=root, child=at_once)
    async with EngineWorld(tmp_path, cast, BUILDERS, worktrees=OwnWorktrees(fail)) as world:
        workspace = await world.open()
        with capture_logs():
            await world.prompted(workspace)
            await world.idle(workspace)
        assert await world.ends(workspace) == [("child", "completed"), ("root", "completed")]


async def test_settling_that_hangs_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B18: git waiting for a lock or a network disk would keep a cancelled run alive as long as it likes."""
    monkeypatch.setattr("windlass.limits.CLEAR_UP_SECONDS", 0.2)

    async def hang() -> None:
        await asyncio.Event().wait()

    async def root(stage: Stage) -> None:
        await stage.start("child", role="builder")
        await forever(stage)

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast, BUILDERS, worktrees=OwnWorktrees(hang)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await cast.on_stage("child")
        with capture_logs():
            async with asyncio.timeout(5):
                await workspace.cancel(session_id, BY)
                await world.idle(workspace)
        assert await world.ends(workspace) == [("child", "canceled"), ("root", "canceled")]


async def test_a_mailbox_that_somebody_else_holds_does_not_keep_a_run_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3: a stopped process that holds a mailbox's lock would keep the session busy for ever."""
    monkeypatch.setattr("windlass.limits.SHARED_LOCK_SECONDS", 0.05)
    somebody = ExitStack()

    async def root(stage: Stage) -> None:
        somebody.enter_context(mailbox._state.locked())  # now its letter can neither be read nor given back

    room = Mailroom(tmp_path / "mail")
    with somebody:
        async with EngineWorld(tmp_path, Cast(root=root), mailroom=room) as world:
            workspace = await world.open()
            session = await workspace.create_session("", BY)
            mailbox = Store(tmp_path / "mail").mailbox(Path(workspace.path), session.id)
            await asyncio.to_thread(room.deliver, workspace.path, session.id, "ses_other", "general", "hello")
            await workspace.prompt(Prompt(session.id, "root"), BY)
            await world.idle(workspace)
            assert await world.ends(workspace) == [("root", "completed")]


async def test_a_run_starts_nothing_once_its_executor_is_over(tmp_path: Path) -> None:
    """I19: an agent started by a task that was left behind belongs to nobody, and no cancel would ever reach it."""
    settling, asked = asyncio.Event(), asyncio.Event()
    left: list[asyncio.Task[None]] = []

    async def settle() -> None:
        settling.set()
        await asked.wait()

    async def root(stage: Stage) -> None:
        await stage.start("child", role="builder")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        left.append(asyncio.create_task(start_late(stage)))

    async def start_late(stage: Stage) -> None:
        await settling.wait()
        try:
            await stage.events.delegate(StartAgent("late"))
        finally:
            asked.set()

    cast = Cast(root=root, child=child, late=forever)
    async with EngineWorld(tmp_path, cast, BUILDERS, worktrees=OwnWorktrees(settle)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await asyncio.wait_for(asked.wait(), 10)
        await world.idle(workspace)
        (child_session,) = workspace.sessions.children(session_id)
        assert workspace.sessions.children(child_session.id) == []
        await asyncio.wait(left)
        assert left[0].cancelled()


async def test_a_run_that_ends_while_the_server_leaves_takes_its_agents_with_it(tmp_path: Path) -> None:
    """B35: it would wait for an agent that nobody told to stop, and the server with it."""
    end = asyncio.Event()

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await end.wait()

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await cast.on_stage("child")
        leaving = asyncio.create_task(world.registry.drain(30))
        await asyncio.sleep(0)  # its first step
        assert workspace.draining
        end.set()
        await asyncio.wait_for(leaving, 5)
        assert await world.ends(workspace) == [("child", "interrupted"), ("root", "completed")]


def refuse(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def poisoned(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the disk takes nothing, and the journal knows."""
    monkeypatch.setattr(SqliteBackend, "commit", refuse)
    with pytest.raises(JournalPoisoned):
        await workspace.create_session("", BY)


async def test_a_family_on_a_full_disk_lets_the_server_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I19: a root would wait for the end of agents whose end nobody could write, and the process would stay."""

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        name = f"drive {workspace.active_run(child.id)}"
        try:
            await forever(stage)
        finally:  # the last to stop
            await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == name])

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await cast.on_stage("child")
        await poisoned(workspace, monkeypatch)
        await asyncio.wait_for(world.registry.drain(0), 3)


async def test_a_disk_that_is_full_while_a_root_waits_for_its_agents_lets_the_server_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I19: the end it waits for is never told, so it would wait until its guard lets it go."""
    stopping, stop = asyncio.Event(), asyncio.Event()

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await cast.on_stage("child")

    async def child(stage: Stage) -> None:
        try:
            await forever(stage)
        finally:
            stopping.set()
            await stop.wait()

    cast = Cast(root=root, child=child)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await asyncio.wait_for(stopping.wait(), 10)
        await poisoned(workspace, monkeypatch)
        stop.set()
        await asyncio.wait_for(world.registry.drain(0), 3)


def test_the_time_limit_holds_on_a_loop_whose_timers_are_early(tmp_path: Path) -> None:
    """A31: uvloop counts in whole milliseconds, so the one look at the clock could come before the time is over, and
    then never again."""
    states: list[str] = []

    async def root(stage: Stage) -> None:
        await stage.start("child")
        reply = await stage.events.delegate(WaitForAgents(timeout_seconds=2))
        states.append(reply.agents[0].state)

    async def families() -> None:
        config = Config(model="x/y", agents=AgentsConfig(max_time="50ms"))
        async with EngineWorld(tmp_path, Cast(root=root, child=forever), config) as world:
            workspace = await world.open()
            for _ in range(FAMILIES):
                await world.prompted(workspace)
            await world.idle(workspace)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(families())
    assert states == ["failed"] * FAMILIES
