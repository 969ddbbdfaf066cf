"""What an agent may do, and on whose behalf: never more than its parent, and nothing to what people do with it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cast import Cast, Play, Stage, forever
from engine_world import BY, EngineWorld
from own_worktrees import BUILDERS, OwnWorktrees

from windlass.config import AgentConfig, Config, ProviderConfig, RoleConfig
from windlass.engine.workspace import Workspace
from windlass.wire.delegation import CancelAgent, StartAgent, SteerAgent, WaitForAgents
from windlass.wire.execution import RunSpec
from windlass.wire.http import Prompt

PROVIDERS = {"x": ProviderConfig("scripted")}


async def at_once(stage: Stage) -> None:
    """A player with nothing to do."""


class ConfiguredCast(Cast):
    """Remembers with which configuration each player's executor was made."""

    def __init__(self, **players: Play) -> None:
        super().__init__(**players)
        self.configs: dict[str, Config] = {}

    def __call__(self, *arguments: object) -> Cast:
        _workspace, config, spec = arguments
        assert isinstance(config, Config) and isinstance(spec, RunSpec)
        self.configs[spec.prompt] = config
        return self


async def test_an_agent_of_an_agent_in_a_worktree_stays_in_it(tmp_path: Path) -> None:
    """A31: it would write into the people's own directory, which its parent was kept out of."""
    paths: dict[str, str] = {}

    async def root(stage: Stage) -> None:
        await stage.start("child", role="builder")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        paths["child"] = stage.spec.workspace_path
        await stage.start("grandchild")
        await stage.events.delegate(WaitForAgents())

    async def grandchild(stage: Stage) -> None:
        paths["grandchild"] = stage.spec.workspace_path

    cast = Cast(root=root, child=child, grandchild=grandchild)
    async with EngineWorld(tmp_path, cast, BUILDERS, worktrees=OwnWorktrees()) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert paths["grandchild"] == paths["child"] != world.path


async def test_an_agent_keeps_its_parents_configuration_when_another_is_loaded(tmp_path: Path) -> None:
    """A31: a reload while the parent runs would give its agents tools that the parent itself has not."""
    narrow = Config(model="x/y", providers=PROVIDERS, agent=AgentConfig(allowed_tools=("view", "agent")))

    async def root(stage: Stage) -> None:
        world.registry.context.config = Config(model="x/y", providers=PROVIDERS)
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    cast = ConfiguredCast(root=root, child=at_once)
    async with EngineWorld(tmp_path, cast, narrow) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert cast.configs["child"] is narrow


async def test_steering_an_agent_that_people_use_is_refused(tmp_path: Path) -> None:
    """I6 A31: a model would speak into a conversation of people's own, and what came of that would count for nobody's
    limits."""
    ended, heard = asyncio.Event(), asyncio.Event()
    agents: list[str] = []
    errors: list[str] = []
    taken: list[str] = []

    async def root(stage: Stage) -> None:
        agents.append((await stage.start("child")).id)
        await stage.events.delegate(WaitForAgents())
        ended.set()
        await cast.on_stage("persons")
        errors.append((await stage.events.delegate(SteerAgent(agents[0], "do as I say"))).error)
        heard.set()

    async def persons(stage: Stage) -> None:
        await heard.wait()
        taken.extend(message.text for message in stage.steer.take())

    cast = Cast(root=root, child=at_once, persons=persons)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await asyncio.wait_for(ended.wait(), 10)
        await workspace.prompt(Prompt(agents[0], "persons"), BY)
        await world.idle(workspace)
    assert (len(errors), "People are using" in errors[0], taken) == (1, True, [])


async def test_a_model_that_cancels_its_agent_leaves_what_people_queued_there(tmp_path: Path) -> None:
    """I6: a person's prompt would vanish without a word, by the decision of a model."""
    cancel = asyncio.Event()
    agents: list[str] = []

    async def root(stage: Stage) -> None:
        agents.append((await stage.start("child")).id)
        await cancel.wait()
        await stage.events.delegate(CancelAgent(agents[0]))

    cast = Cast(root=root, child=forever, persons=at_once)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await cast.on_stage("child")
        await workspace.prompt(Prompt(agents[0], "persons"), BY)
        cancel.set()
        await world.idle(workspace)
        ends = dict(await world.ends(workspace))
    assert ends == {"child": "canceled", "persons": "completed", "root": "completed"}


async def steered(stage: Stage, agent: str, workspace: Workspace) -> None:
    await stage.events.delegate(SteerAgent(agent, "again"))
    await stage.events.delegate(WaitForAgents())


async def prompted(stage: Stage, agent: str, workspace: Workspace) -> None:
    await workspace.prompt(Prompt(agent, "again"), BY)
    await workspace.until_any_idle([agent], 10)


GoOn = Callable[[Stage, str, Workspace], Awaitable[None]]


@pytest.mark.parametrize("go_on", [steered, prompted])
async def test_an_agent_keeps_its_roles_model_in_its_later_runs(tmp_path: Path, go_on: GoOn) -> None:
    """B72: the second run of a cheap agent would be paid at the dearest model's price."""
    used: list[tuple[str, str]] = []

    async def root(stage: Stage) -> None:
        child = await stage.start("child", role="cheap")
        await stage.events.delegate(WaitForAgents())
        await go_on(stage, child.id, workspace)

    async def child(stage: Stage) -> None:
        used.append((stage.spec.model, stage.spec.reasoning_effort))

    roles = {"cheap": RoleConfig(model="x/cheap", reasoning_effort="low")}
    config = Config(model="x/dear", reasoning_effort="high", providers=PROVIDERS, roles=roles)
    async with EngineWorld(tmp_path, Cast(root=root, child=child, again=child), config) as world:
        workspace = await world.open()
        await world.prompted(workspace)
        await world.idle(workspace)
    assert used == [("x/cheap", "low")] * 2


async def test_an_idle_agent_that_is_steered_goes_on_with_its_parents_model(tmp_path: Path) -> None:
    """B72: people who chose a model for this prompt would get another one's work from the second run on."""
    used: list[str] = []

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        await stage.events.delegate(WaitForAgents())
        await steered(stage, child.id, workspace)

    async def child(stage: Stage) -> None:
        used.append(stage.spec.model)

    config = Config(model="x/default", providers=PROVIDERS)
    async with EngineWorld(tmp_path, Cast(root=root, child=child, again=child), config) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        await workspace.prompt(Prompt(session.id, "root", model="x/chosen"), BY)
        await world.idle(workspace)
    assert used == ["x/chosen"] * 2


async def test_an_agent_that_is_refused_leaves_no_session(tmp_path: Path) -> None:
    """B72: people would find an agent in the list that nobody ever started."""
    errors: list[str] = []

    async def root(stage: Stage) -> None:
        leaving.append(asyncio.create_task(world.registry.drain(10)))
        await asyncio.sleep(0)  # its first step: from here on nothing more is accepted
        errors.append((await stage.events.delegate(StartAgent("child"))).error)

    leaving: list[asyncio.Task[None]] = []
    cast = Cast(root=root)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await cast.on_stage("root")
        await leaving[0]
        assert workspace.sessions.children(session_id) == []
        assert {row.key for row in await world.facts(workspace, "session")} == {session_id}
    assert "leaving" in errors[0]
