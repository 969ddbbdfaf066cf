"""What a prompt brings for its run alone: rules that allow, and a limit on what it may cost."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld

from windlass import limits
from windlass.config import Config, PermissionsConfig
from windlass.engine.workspace import Workspace
from windlass.errors import Conflict, Invalid
from windlass.wire.delegation import WaitForAgents
from windlass.wire.execution import PermissionAsk, Verdict
from windlass.wire.http import Prompt
from windlass.wire.permissions import PermissionNotification
from windlass.wire.run_events import UsageGained
from windlass.wire.runs import Run, Usage

MAKE = PermissionAsk("c1", "bash", "execute", "build", "/", "make")
PUSH = PermissionAsk("c2", "bash", "execute", "publish", "/", "git push origin")
REMOVE = PermissionAsk("c3", "bash", "execute", "clean", "/", "rm -r build")
RULES = PermissionsConfig(allow=(), ask=("bash:git push*",), deny=("bash:rm *",), unattended="deny")
STRICT = Config(model="x/y", permissions=RULES)


async def decided(world: EngineWorld, workspace: Workspace) -> list[tuple[str, str, str]]:
    """The outcome, who decided and by which rule, of everything that was asked for."""
    rows = await world.facts(workspace, "permission_notification")
    bodies = [msgspec.json.decode(row.body, type=PermissionNotification) for row in rows]
    return [(body.outcome, body.by.name if body.by else "", body.pattern) for body in bodies]


async def last_error(world: EngineWorld, workspace: Workspace, run_id: str) -> tuple[str, str]:
    run = await workspace.run(run_id)
    return run.state, run.error


class Asking:
    """A player that asks for these and keeps what it was told."""

    def __init__(self, *asks: PermissionAsk) -> None:
        self._asks = asks
        self.verdicts: list[Verdict] = []

    async def __call__(self, stage: Stage) -> None:
        for ask in self._asks:
            self.verdicts.append(await stage.events.approve(ask))


async def test_a_rule_of_the_prompt_lets_its_run_do_what_it_is_about(tmp_path: Path) -> None:
    """B46: a script that named what may be done would still wait for a person; and nobody could tell who allowed it."""
    root = Asking(MAKE)
    async with EngineWorld(tmp_path, Cast(root=root), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", allow=["bash:make*"]), BY)
        await world.idle(workspace)
        assert await decided(world, workspace) == [("granted", "run rule", "bash:make*")]
    assert root.verdicts == ["granted"]


async def test_a_rule_of_the_prompt_does_not_outlast_its_run(tmp_path: Path) -> None:
    """I10: what one script allowed itself would be allowed to everyone after it."""
    after = Asking(MAKE)
    async with EngineWorld(tmp_path, Cast(root=Asking(MAKE), after=after), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", allow=["bash:make*"]), BY)
        await workspace.prompt(Prompt(session.id, "after"), BY)
        async with asyncio.timeout(10):
            while not workspace.permissions.pending:
                await workspace.log.changed(asyncio.get_running_loop().create_future())
        await workspace.desk.resolve(next(iter(workspace.permissions.pending)), "deny", BY)
        await world.idle(workspace)
    assert after.verdicts == ["denied"]


@pytest.mark.parametrize(("rule", "who"), [("*", "policy"), ("bash:rm -r build", "policy")])
async def test_what_the_config_denies_no_prompt_allows(tmp_path: Path, rule: str, who: str) -> None:
    """A25: a deny rule would be worth as little as whoever writes prompts wants it to be."""
    root = Asking(REMOVE)
    async with EngineWorld(tmp_path, Cast(root=root), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", allow=[rule]), BY)
        await world.idle(workspace)
        assert await decided(world, workspace) == [("denied", who, "bash:rm *")]


async def test_plan_mode_is_stronger_than_a_rule_of_the_prompt(tmp_path: Path) -> None:
    """I10: a person who wanted to look first would find it done."""
    root = Asking(MAKE)
    async with EngineWorld(tmp_path, Cast(root=root), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.set_plan(session.id, True, BY)
        await workspace.prompt(Prompt(session.id, "root", allow=["*"]), BY)
        await world.idle(workspace)
    assert root.verdicts == ["denied"]


@pytest.mark.parametrize(("rule", "verdict"), [("bash:*", "asked"), ("bash:git push origin*", "granted")])
async def test_an_ask_rule_of_the_config_yields_to_a_longer_one_only(tmp_path: Path, rule: str, verdict: str) -> None:
    """Else `--allow "*"` would push what a person wanted to be asked about."""
    async with EngineWorld(tmp_path, Cast(root=Asking(PUSH)), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        accepted = await workspace.prompt(Prompt(session.id, "root", allow=[rule]), BY)
        async with asyncio.timeout(10):
            while workspace.is_busy and not workspace.permissions.pending:
                await workspace.log.changed(asyncio.get_running_loop().create_future())
        await workspace.cancel_run(accepted.run_id, BY)
        await world.idle(workspace)
        assert (await decided(world, workspace))[0][0] == verdict


async def test_the_agents_of_a_run_have_its_rules(tmp_path: Path) -> None:
    """B72: a run that delegates what it may do itself would wait for a person after all."""
    grandchild = Asking(MAKE)

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        await stage.start("grandchild")
        await stage.events.delegate(WaitForAgents())

    async with EngineWorld(tmp_path, Cast(root=root, child=child, grandchild=grandchild), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", allow=["bash:make*"]), BY)
        await world.idle(workspace)
    assert grandchild.verdicts == ["granted"]


async def test_a_queued_run_keeps_its_terms_over_a_restart(tmp_path: Path) -> None:
    """B13: after a crash it would ask nobody it meant to, and cost what it likes."""
    seen: list[float] = []

    async def late(stage: Stage) -> None:
        seen.append(stage.spec.max_cost)
        seen.append(await stage.events.approve(MAKE) == "granted")

    cast = Cast(first=forever, late=late)
    async with EngineWorld(tmp_path, cast, STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "first"), BY)
        await cast.on_stage("first")
        await workspace.prompt(Prompt(session.id, "late", max_cost=0.5, allow=["bash:make*"]), BY)
    async with EngineWorld(tmp_path, cast, STRICT) as world:
        workspace = await world.open()
        await world.idle(workspace)
    assert seen == [0.5, True]


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"allow": [""]}, r"allow\[0\]"),
        ({"allow": ["view", "bash:a\nb"]}, r"allow\[1\]"),
        ({"allow": ["x" * (limits.PATTERN_CHARACTERS + 1)]}, r"allow\[0\]"),
        ({"allow": ["view"] * (limits.RUN_RULES + 1)}, "at most"),
        ({"max_cost": -1.0}, "max_cost"),
        ({"max_cost": float("nan")}, "max_cost"),
        ({"max_cost": float("inf")}, "max_cost"),
        ({"allow": ["view"], "on_busy": "steer"}, "steer"),
        ({"max_cost": 1.0, "on_busy": "steer"}, "steer"),
    ],
)
async def test_terms_that_cannot_be_kept_are_refused(tmp_path: Path, terms: dict[str, object], said: str) -> None:
    """A rule that means nothing would leave a script waiting; one for a steered prompt would widen another's run."""
    async with EngineWorld(tmp_path, Cast(), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        with pytest.raises(Invalid, match=said):
            await workspace.prompt(msgspec.structs.replace(Prompt(session.id, "root"), **terms), BY)
        assert not workspace.is_busy


@pytest.mark.parametrize("other", [{"allow": ["bash"]}, {"max_cost": 2.0}, {}])
async def test_the_same_run_id_with_other_terms_is_another_prompt(tmp_path: Path, other: dict[str, object]) -> None:
    """B12 I8: whoever sends it again would believe that the new rules hold."""

    async def root(stage: Stage) -> None:
        """Nothing to do."""

    async with EngineWorld(tmp_path, Cast(root=root), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        prompt = Prompt(session.id, "root", run_id="mine", max_cost=1.0, allow=["view"])
        first = await workspace.prompt(prompt, BY)
        assert (await workspace.prompt(prompt, BY)).run_id == first.run_id
        with pytest.raises(Conflict):
            bare = Prompt(session.id, "root", run_id="mine")
            await workspace.prompt(msgspec.structs.replace(bare, **other), BY)
        await world.idle(workspace)


# -- what it may cost --------------------------------------------------------------------------------------------------


async def spend(stage: Stage, cost: float) -> None:
    await stage.events.durable(UsageGained(Usage(10, 10), cost))


async def test_a_run_and_its_agents_together_cost_no_more_than_the_prompt_says(tmp_path: Path) -> None:
    """B72: a run would stay below its limit by having others spend the money."""

    async def root(stage: Stage) -> None:
        await spend(stage, 0.4)
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        await spend(stage, 0.4)
        await spend(stage, 0.4)
        await asyncio.Event().wait()

    async with EngineWorld(tmp_path, Cast(root=root, child=child), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        accepted = await workspace.prompt(Prompt(session.id, "root", max_cost=1.0), BY)
        await world.idle(workspace)
        state, error = await last_error(world, workspace, accepted.run_id)
        ends = [msgspec.json.decode(row.body, type=Run) for row in await world.facts(workspace, "run")]
    assert state == "failed" and "cost 1.2, and may cost 1" in error and "--max-cost" in error
    assert [run.state for run in ends if run.is_terminal] == ["canceled", "failed"]


async def test_agents_that_stay_below_the_limit_are_left_alone(tmp_path: Path) -> None:
    """Else any run with agents would end at its first cent."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())
        await spend(stage, 0.7)  # its last step: whole, and not thrown away

    async def child(stage: Stage) -> None:
        await spend(stage, 0.4)

    async with EngineWorld(tmp_path, Cast(root=root, child=child), STRICT) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", max_cost=1.0), BY)
        await world.idle(workspace)
        assert await world.ends(workspace) == [("child", "completed"), ("root", "completed")]
