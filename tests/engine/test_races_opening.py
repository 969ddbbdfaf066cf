"""Opening meets closing, leaving and goodbyes: whoever is given a workspace has one that stays."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_world import EngineWorld, nobody_runs

from windlass.engine.subscription import Subscription
from windlass.engine.workspace import Workspace
from windlass.errors import Conflict, Unavailable


async def begun(world: EngineWorld, client_id: str) -> "asyncio.Task[Workspace]":
    """A create that has passed its first look and waits for the disk."""
    task = asyncio.create_task(world.open(client_id))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """In place of a thread: a create gets to the opening itself in its first step."""
    return function(*arguments)


async def test_a_caller_that_goes_away_does_not_end_the_opening_for_the_others(tmp_path: Path) -> None:
    """R25: else one impatient client makes everyone fail who opens the same directory at that moment."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        world.registry.context.in_thread = at_once
        first, second = await begun(world, "first"), await begun(world, "second")
        assert world.registry._opening  # both wait for the same opening
        first.cancel()
        workspace = await second
        assert (workspace.closed, workspace.claims.client_ids) == (False, ["second"])


async def test_a_workspace_that_closes_while_another_client_joins_it_is_opened_again(tmp_path: Path) -> None:
    """R29: else the second client is given a workspace that its first request finds closed."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        world.registry.context.in_thread = at_once

        async def come_and_go() -> Workspace:
            workspace = await world.open("guest")
            world.registry.retire("guest")
            return workspace

        guest = asyncio.create_task(come_and_go())
        joining = await begun(world, "stayer")
        left, workspace = await guest, await joining
        assert left.closed  # it did close under the other one: otherwise nothing is shown here
        assert world.registry.get(workspace.id) is workspace
        assert workspace.claims.client_ids == ["stayer"]


async def test_a_client_that_says_goodbye_during_its_create_is_refused_and_holds_nothing(tmp_path: Path) -> None:
    """R33: else the workspace is held for somebody who has left, until a grace is over."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        creating = await begun(world, "leaver")
        world.registry.retire("leaver")
        with pytest.raises(Conflict, match="goodbye"):
            await creating
        assert world.registry.is_idle


async def test_a_server_with_a_create_under_way_does_not_decide_to_leave(tmp_path: Path) -> None:
    """R35 I17: else the create that was slow to open is answered by a server that has left."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        creating = await begun(world, "slow")
        assert not world.registry.leave_if_idle()
        assert not (await creating).closed


async def test_a_create_after_the_decision_to_leave_is_refused(tmp_path: Path) -> None:
    """R36 I17: else a client is told 200 by a server that is gone a moment later."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        assert world.registry.leave_if_idle()
        with pytest.raises(Unavailable, match="leaving"):
            await world.open()


async def test_a_create_that_waits_for_the_disk_when_the_server_stops_is_refused(tmp_path: Path) -> None:
    """R36 I17: else what it opens is left behind by a stop that had already counted the workspaces."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        creating = await begun(world, "late")
        await world.registry.drain(0.0)
        with pytest.raises(Unavailable, match="leaving"):
            await creating
        assert world.registry.is_idle


async def test_a_stream_on_a_workspace_that_has_just_closed_greets_and_ends(tmp_path: Path) -> None:
    """R28: else a client that attached a moment too late listens to a workspace in which nothing will ever happen."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        workspace = await world.open("leaver")
        world.registry.retire("leaver")
        late = Subscription(workspace, "late", None, deltas=False)
        async with asyncio.timeout(5):
            assert await late.next(60.0) == b""
        assert late.is_over
        late.close()
        assert not workspace.attendance.timers
