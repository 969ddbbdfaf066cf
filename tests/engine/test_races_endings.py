"""However a run's executor comes to be, fails or counts: the run ends once, and what it says can be read again."""

import math
from pathlib import Path

import msgspec
import pytest
from engine_world import EngineWorld, Playing

from windlass.engine.workspace import Workspace
from windlass.errors import Invalid
from windlass.wire.execution import Events, RunOutcome
from windlass.wire.run_events import UsageGained
from windlass.wire.runs import Usage


def no_executor(*_: object) -> Playing:
    raise Invalid("The provider is no longer in the configuration.")


async def announced(world: EngineWorld, workspace: Workspace) -> list[dict[str, object]]:
    return [msgspec.json.decode(row.body) for row in await world.facts(workspace, "run_complete")]


async def test_a_run_whose_executor_cannot_be_made_ends_once_as_failed(tmp_path: Path) -> None:
    """R19 I3: else whoever waits for the run waits for ever, or is told twice."""
    async with EngineWorld(tmp_path, no_executor) as world:
        workspace = await world.open()
        session_id, run_id = await world.ran(workspace)
        ends = await announced(world, workspace)
        assert [(end["run_id"], "no longer in the configuration" in str(end["error"])) for end in ends] == [
            (run_id, True)
        ]
        roles = [message.role for message in await workspace.conversation(session_id)]
        assert (roles, (await workspace.run(run_id)).state) == (["user", "assistant"], "failed")


@pytest.mark.parametrize("cost", [math.nan, math.inf, -math.inf, 1.7e308])
async def test_a_cost_that_is_no_number_is_not_counted_and_the_session_can_be_read_again(
    tmp_path: Path, cost: float
) -> None:
    """I15: JSON has no such number; stored as nothing it makes the session unreadable after the next start."""

    async def play(events: Events) -> RunOutcome:
        events.emit(UsageGained(Usage(prompt_tokens=3), 0.5))
        events.emit(UsageGained(Usage(prompt_tokens=4), cost))
        return RunOutcome("completed")

    async with EngineWorld(tmp_path, lambda *_: Playing(play)) as world:
        workspace = await world.open()
        session_id, run_id = await world.ran(workspace)
        world.registry.retire("client")
        again = await world.open("another")
        assert again is not workspace
        session, run = again.sessions.get(session_id), await again.run(run_id)
        assert (session.cost, session.prompt_tokens, run.cost) == (0.5, 7, 0.5)
