"""Plan mode: from the moment a person says so nothing is changed, by a run that is going on or by one that starts."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from cast import Cast, Stage
from engine_world import BY, EngineWorld

from windlass.config import Config, PermissionsConfig
from windlass.engine.workspace import Workspace
from windlass.errors import NotFound
from windlass.testing.server_process import until
from windlass.wire.delegation import WaitForAgents
from windlass.wire.execution import PermissionAsk
from windlass.wire.http import Prompt
from windlass.wire.permissions import By, PermissionNotification
from windlass.wire.sessions import Session

# Everything is allowed by rule: only plan mode can say no here.
TRUSTING = Config(model="x/y", permissions=PermissionsConfig(allow=("view", "bash"), ask=(), deny=()))
LOOK = PermissionAsk("c1", "view", "read", "look", "/", "a", read_only=True)
ACT = PermissionAsk("c2", "bash", "execute", "act", "/", "make")


async def told(world: EngineWorld, workspace: Workspace) -> list[tuple[str, str]]:
    """Who decided what, of all that was refused."""
    rows = await world.facts(workspace, "permission_notification")
    bodies = [msgspec.json.decode(row.body, type=PermissionNotification) for row in rows]
    return [(body.outcome, (body.by or By("")).name) for body in bodies if body.outcome != "granted"]


async def test_plan_mode_is_a_fact_of_the_session(tmp_path: Path) -> None:
    """B46 B31: other clients would not know, and a restart would let everything go on."""
    async with EngineWorld(tmp_path, Cast()) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.set_plan(session.id, True, By("someone"))
        row = (await world.facts(workspace, "session"))[-1]
        assert (
            msgspec.json.decode(row.body, type=Session).plan and msgspec.json.decode(row.by, type=By).name == "someone"
        )
        with pytest.raises(NotFound):
            await workspace.set_plan("ses_unknown", True, BY)
    async with EngineWorld(tmp_path, Cast()) as world:
        assert (await world.open()).sessions.get(session.id).plan


async def test_a_run_in_plan_mode_reads_and_does_not_act(tmp_path: Path) -> None:
    """I10: what a person wanted to look at first would be done already."""
    verdicts = []

    async def root(stage: Stage) -> None:
        verdicts.extend([stage.spec.plan, await stage.events.approve(LOOK), await stage.events.approve(ACT)])

    async with EngineWorld(tmp_path, Cast(root=root), TRUSTING) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.set_plan(session.id, True, BY)
        await workspace.prompt(Prompt(session.id, "root"), BY)
        await world.idle(workspace)
        assert await told(world, workspace) == [("denied", "plan mode")]
    assert verdicts == [True, "granted", "denied"]


@pytest.mark.parametrize("skip", [False, True])
async def test_a_run_that_is_going_on_changes_nothing_from_then_on(tmp_path: Path, skip: bool) -> None:
    """I10: a person who sees it going wrong could only cancel it; and skipping questions must not skip this."""
    verdicts = []
    switched = asyncio.Event()

    async def root(stage: Stage) -> None:
        verdicts.extend([stage.spec.plan, await stage.events.approve(ACT)])
        reached.set()
        await switched.wait()
        verdicts.extend([await stage.events.approve(LOOK), await stage.events.approve(ACT)])

    reached = asyncio.Event()
    async with EngineWorld(tmp_path, Cast(root=root), TRUSTING) as world:
        workspace = await world.open()
        await workspace.set_skip(skip, BY)
        session_id, _ = await world.prompted(workspace)
        await reached.wait()
        await workspace.set_plan(session_id, True, BY)
        switched.set()
        await world.idle(workspace)
    assert verdicts == [False, "granted", "granted", "denied"]


async def test_a_run_that_started_in_plan_mode_stays_in_it_and_so_do_its_agents(tmp_path: Path) -> None:
    """A31: letting later runs act would let this one act in the middle of its plan, or through a child."""
    verdicts: dict[str, object] = {}
    switched = asyncio.Event()

    async def root(stage: Stage) -> None:
        reached.set()
        await switched.wait()
        verdicts["root"] = await stage.events.approve(ACT)
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        verdicts["child"] = (stage.spec.plan, await stage.events.approve(ACT))

    async def later(stage: Stage) -> None:
        verdicts["later"] = (stage.spec.plan, await stage.events.approve(ACT))

    reached = asyncio.Event()
    async with EngineWorld(tmp_path, Cast(root=root, child=child, later=later), TRUSTING) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.set_plan(session.id, True, BY)
        await workspace.prompt(Prompt(session.id, "root"), BY)
        await reached.wait()
        await workspace.set_plan(session.id, False, BY)
        switched.set()
        await workspace.prompt(Prompt(session.id, "later"), BY)
        await world.idle(workspace)
    assert verdicts == {"root": "denied", "child": (True, "denied"), "later": (False, "granted")}


async def test_the_agents_of_a_session_in_plan_mode_are_in_it_too(tmp_path: Path) -> None:
    """A31: a run that may not act would have it done by someone else."""
    verdicts: dict[str, object] = {}
    switched = asyncio.Event()

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        reached.set()
        await switched.wait()
        verdicts["child"] = (stage.spec.plan, await stage.events.approve(ACT))

    reached = asyncio.Event()
    async with EngineWorld(tmp_path, Cast(root=root, child=child), TRUSTING) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await reached.wait()
        await workspace.set_plan(session_id, True, BY)
        switched.set()
        await world.idle(workspace)
    assert verdicts == {"child": (False, "denied")}


async def test_an_allow_that_comes_after_plan_mode_lets_nothing_be_done(tmp_path: Path) -> None:
    """I10: a question that was open when someone switched it on could still be answered, and the run would act."""
    verdicts = []

    async def root(stage: Stage) -> None:
        verdicts.extend([await stage.events.approve(ACT)])

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await until(lambda: bool(workspace.permissions.pending), "the question")
        await workspace.set_plan(session_id, True, BY)
        assert await workspace.desk.resolve(next(iter(workspace.permissions.pending)), "allow", BY)
        await world.idle(workspace)
        assert ("denied", "plan mode") in await told(world, workspace)
    assert verdicts == ["denied"]
