"""A question whose asker does not wait any more is taken back, also when its run goes on."""

import asyncio
from pathlib import Path

import msgspec
from engine_world import EngineWorld, Playing

from windlass.wire.execution import Events, PermissionAsk, RunOutcome


async def test_a_question_is_withdrawn_when_its_asker_stops_waiting(tmp_path: Path) -> None:
    """B25 I11: a worker withdraws what its tool no longer needs; people would answer it, and nothing would happen."""
    ask = PermissionAsk("call", "bash", "execute", "Run make", "/", "make")

    async def play(events: Events) -> RunOutcome:
        asking = asyncio.ensure_future(events.approve(ask))
        await asyncio.sleep(0)  # its first step, in which it asks
        assert workspace.permissions.pending
        asking.cancel()
        await asyncio.wait([asking])
        assert not workspace.permissions.pending
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        _, run_id = await world.ran(workspace)
        notes = await world.facts(workspace, "permission_notification")
        told = [msgspec.json.decode(row.body)["outcome"] for row in notes]
        states = [msgspec.json.decode(row.body)["state"] for row in await world.facts(workspace, "run")]
        assert (told, (await workspace.run(run_id)).state) == (["asked", "withdrawn"], "completed")
        assert states == ["accepted", "running", "waiting", "running", "completed"]
