"""Sub-agents over the real engine: started, awaited, steered, cancelled, paid for, and ended before their parents."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld

from windlass.config import AgentsConfig, Config
from windlass.engine import reading
from windlass.engine.workspace import Workspace
from windlass.wire.delegation import CancelAgent, ListAgents, MessageAgent, SteerAgent, WaitForAgents
from windlass.wire.execution import PermissionAsk
from windlass.wire.http import Prompt
from windlass.wire.permissions import PermissionRequest
from windlass.wire.run_events import SteerTaken, UsageGained
from windlass.wire.runs import Run, Usage


async def prompted(workspace: Workspace, prompt: str = "root") -> tuple[str, str]:
    """A new session with one prompt: the ids of both."""
    session = await workspace.create_session("", BY)
    accepted = await workspace.prompt(Prompt(session.id, prompt), BY)
    return session.id, accepted.run_id


async def terminals(world: EngineWorld, workspace: Workspace) -> list[Run]:
    """Every run that ended, in the order in which that was told."""
    runs = [msgspec.json.decode(row.body, type=Run) for row in await world.facts(workspace, "run")]
    return [run for run in runs if run.is_terminal]


async def test_an_agent_is_a_session_below_its_parent_and_its_answer_is_told(tmp_path: Path) -> None:
    """B72: without its session nobody could look at it, and without its answer starting it was for nothing."""
    told = []

    async def root(stage: Stage) -> None:
        await stage.start("child", role="explore")
        told.append(await stage.events.delegate(WaitForAgents()))

    async def child(stage: Stage) -> None:
        assert stage.spec.roles == ("explore",)
        await stage.say("found it")

    async with EngineWorld(tmp_path, Cast(root=root, child=child)) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        await world.idle(workspace)
        children = await reading.sessions(workspace, session_id)
        assert [(session.role, session.title) for session in children] == [("explore", "explore: child")]
        (status,) = told[0].agents
        assert (status.id, status.state, status.text) == (children[0].id, "completed", "found it")
        assert [run.session_id for run in await terminals(world, workspace)] == [children[0].id, session_id]


async def test_waiting_for_any_tells_of_the_first_that_ends_and_then_of_the_next(tmp_path: Path) -> None:
    """B72: told of the same one again, a parent would never hear of the others."""
    gate = asyncio.Event()
    told: list[list[str]] = []

    async def root(stage: Stage) -> None:
        slow, quick = await stage.start("slow"), await stage.start("quick")
        names = {slow.id: "slow", quick.id: "quick"}
        for _ in range(2):
            reply = await stage.events.delegate(WaitForAgents(until="any"))
            told.append([names[agent.id] for agent in reply.agents])
            gate.set()
        assert "no agent to wait for" in (await stage.events.delegate(WaitForAgents())).error

    async def slow(stage: Stage) -> None:
        await gate.wait()

    async def quick(stage: Stage) -> None:
        pass

    async with EngineWorld(tmp_path, Cast(root=root, slow=slow, quick=quick)) as world:
        workspace = await world.open()
        await prompted(workspace)
        await world.idle(workspace)
    assert told == [["quick"], ["slow"]]


async def test_waiting_has_a_bound(tmp_path: Path) -> None:
    """B72: an agent that hangs would take its parent with it."""

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        reply = await stage.events.delegate(WaitForAgents(timeout_seconds=0.01))
        assert [agent.state for agent in reply.agents] == ["running"]
        await stage.events.delegate(CancelAgent(child.id))
        await stage.say("went on")

    async with EngineWorld(tmp_path, Cast(root=root, child=forever)) as world:
        workspace = await world.open()
        _session_id, _ = await prompted(workspace)
        await world.idle(workspace)
        ends = await terminals(world, workspace)
        assert [run.state for run in ends] == ["canceled", "completed"]


async def test_a_cancel_of_the_root_ends_all_levels_the_deepest_first(tmp_path: Path) -> None:
    """B18 B72: an agent left behind goes on writing files and spending money for a run that nobody wants."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.start("sibling")
        await forever(stage)

    async def child(stage: Stage) -> None:
        await stage.start("grandchild")
        await forever(stage)

    async def grandchild(stage: Stage) -> None:
        await stage.start("last")
        await forever(stage)

    cast = Cast(root=root, child=child, grandchild=grandchild, last=forever, sibling=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        await cast.on_stage("last", "sibling")
        await workspace.cancel(session_id, BY)
        await world.idle(workspace)
        ends = await terminals(world, workspace)
        assert {run.state for run in ends} == {"canceled"}
        order = [run.prompt for run in ends]
        assert sorted(order) == ["child", "grandchild", "last", "root", "sibling"]
        assert order.index("last") < order.index("grandchild") < order.index("child") < order.index("root")
        assert order[-1] == "root"


async def test_agents_that_ignore_their_cancel_share_one_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B18: level after level, three stubborn agents would take three times as long as one."""
    monkeypatch.setattr("windlass.limits.STOP_ASK_SECONDS", 0.5)
    monkeypatch.setattr("windlass.limits.STOP_ABORT_SECONDS", 0.5)
    let_go = asyncio.Event()

    async def stubborn(stage: Stage, prompt: str = "") -> None:
        if prompt:
            await stage.start(prompt)
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                pass

    async def root(stage: Stage) -> None:
        await stubborn(stage, "child")

    async def child(stage: Stage) -> None:
        await stubborn(stage, "grandchild")

    cast = Cast(root=root, child=child, grandchild=stubborn)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        await cast.on_stage("grandchild")
        clock = asyncio.get_running_loop().time
        began = clock()
        await workspace.cancel(session_id, BY)
        await world.idle(workspace)
        took = clock() - began
        order = [run.prompt for run in await terminals(world, workspace)]
        let_go.set()
        assert order == ["grandchild", "child", "root"]
        assert 1.0 <= took < 2.0  # each alone needs one second


async def test_a_run_that_ends_takes_its_agents_with_it(tmp_path: Path) -> None:
    """I19: nobody would be there any more to hear of them."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await cast.on_stage("child")

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        await prompted(workspace)
        await world.idle(workspace)
        ends = [(run.prompt, run.state) for run in await terminals(world, workspace)]
        assert ends == [("child", "canceled"), ("root", "completed")]


async def test_cancelling_an_agent_leaves_its_parent_and_siblings_alone(tmp_path: Path) -> None:
    """I6 B72: any client may cancel one agent of many."""
    gate = asyncio.Event()

    async def root(stage: Stage) -> None:
        await stage.start("doomed")
        await stage.start("spared")
        await stage.events.delegate(WaitForAgents())

    async def doomed(stage: Stage) -> None:
        await stage.start("below")
        await forever(stage)

    async def spared(stage: Stage) -> None:
        await gate.wait()

    cast = Cast(root=root, doomed=doomed, below=forever, spared=spared)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        await cast.on_stage("below", "spared")
        (session,) = [s for s in workspace.sessions.children(session_id) if s.title == "general: doomed"]
        await workspace.cancel(session.id, BY)
        if workspace.is_session_busy(session.id):  # it may have ended while the cancel became durable
            await workspace.until_any_idle([session.id], 10)
        gate.set()
        await world.idle(workspace)
        ends = {run.prompt: run.state for run in await terminals(world, workspace)}
        assert ends == {"doomed": "canceled", "below": "canceled", "spared": "completed", "root": "completed"}


async def test_a_child_asks_in_its_own_name_and_its_roots(tmp_path: Path) -> None:
    """B72: people attached to the parent must see who wants what, and for whom."""
    ask = PermissionAsk("call", "bash", "execute", "Run make", "/", "make")

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        await stage.start("grandchild")
        await stage.events.delegate(WaitForAgents())

    async def grandchild(stage: Stage) -> None:
        assert await stage.events.approve(ask) == "granted"

    cast = Cast(root=root, child=child, grandchild=grandchild)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        request = await asked(workspace)
        assert request.root_session_id == session_id
        line = [session.id for session in workspace.sessions.lineage(request.session_id)]
        assert (len(line), line[0]) == (3, session_id)
        assert await workspace.desk.resolve(request.id, "allow", BY)
        await world.idle(workspace)
        assert {run.state for run in await terminals(world, workspace)} == {"completed"}


async def asked(workspace: Workspace) -> PermissionRequest:
    """The question that waits, as soon as one does."""
    async with asyncio.timeout(10):
        while not workspace.permissions.pending:
            await workspace.log.changed(asyncio.get_running_loop().create_future())
    return next(iter(workspace.permissions.pending.values())).request


async def test_what_was_granted_to_the_parent_covers_the_child_and_not_the_other_way(tmp_path: Path) -> None:
    """B26 A31: a child that could widen what its parent may do would be the way around every question."""
    for_parent = PermissionAsk("one", "bash", "execute", "Run make", "/", "make")
    for_child = PermissionAsk("two", "bash", "execute", "Run tests", "/", "make test")
    verdicts: list[str] = []

    async def root(stage: Stage) -> None:
        verdicts.append(await stage.events.approve(for_parent))
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())
        verdicts.append(await stage.events.approve(for_child))

    async def child(stage: Stage) -> None:
        verdicts.append(await stage.events.approve(for_parent))
        verdicts.append(await stage.events.approve(for_child))

    async with EngineWorld(tmp_path, Cast(root=root, child=child)) as world:
        workspace = await world.open()
        await prompted(workspace)
        first = await asked(workspace)
        await workspace.desk.resolve(first.id, "allow_session", BY)
        second = await asked(workspace)
        assert second.description == "Run tests"  # the grant answered the child's first question
        await workspace.desk.resolve(second.id, "allow_session", BY)
        third = await asked(workspace)
        assert third.session_id == first.session_id
        await workspace.desk.resolve(third.id, "deny", BY)
        await world.idle(workspace)
    assert verdicts == ["granted", "granted", "granted", "denied"]


async def test_the_cost_of_an_agent_is_added_to_every_session_above_it(tmp_path: Path) -> None:
    """B72: people look at the session they opened to see what they spent."""

    async def root(stage: Stage) -> None:
        stage.events.emit(UsageGained(Usage(10, 1), 1.0))
        await stage.start("child")
        await stage.events.delegate(WaitForAgents())

    async def child(stage: Stage) -> None:
        stage.events.emit(UsageGained(Usage(10, 1), 0.25))
        await stage.start("grandchild")
        await stage.events.delegate(WaitForAgents())

    async def grandchild(stage: Stage) -> None:
        stage.events.emit(UsageGained(Usage(10, 1), 0.5))

    async with EngineWorld(tmp_path, Cast(root=root, child=child, grandchild=grandchild)) as world:
        workspace = await world.open()
        _session_id, _ = await prompted(workspace)
        await world.idle(workspace)
        costs, sessions = [], await reading.sessions(workspace, "")
        while sessions:
            costs.append(sessions[0].cost)
            sessions = await reading.sessions(workspace, sessions[0].id)
        assert costs == [1.75, 0.75, 0.5]


def limited(**agents: object) -> Config:
    return Config(model="x/y", agents=msgspec.convert(agents, AgentsConfig))


async def test_depth_number_and_total_are_limited_for_the_whole_family(tmp_path: Path) -> None:
    """A31: limits of each agent's own would multiply with every level."""
    refusals: list[str] = []
    full = asyncio.Event()

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await full.wait()
        refusals.append(await stage.refused("other"))  # two are at work: the child and the grandchild
        first = workspace.sessions.children(stage.spec.session_id)[0]
        await stage.events.delegate(CancelAgent(first.id))
        await stage.start("other")
        await stage.events.delegate(WaitForAgents())
        refusals.append(await stage.refused("other"))  # that were three in all

    async def child(stage: Stage) -> None:
        await stage.start("grandchild")
        await forever(stage)

    async def grandchild(stage: Stage) -> None:
        refusals.append(await stage.refused("other"))  # it is at the last level
        full.set()
        await forever(stage)

    async def other(stage: Stage) -> None:
        pass

    cast = Cast(root=root, child=child, grandchild=grandchild, other=other)
    config = limited(max_depth=2, max_running=2, max_total=3)
    async with EngineWorld(tmp_path, cast, config) as world:
        workspace = await world.open()
        _session_id, run_id = await prompted(workspace)
        await world.idle(workspace)
        assert (await workspace.run(run_id)).state == "completed"
    assert ["levels deep" in refusals[0], "at work" in refusals[1], "were started" in refusals[2]] == [True] * 3


async def test_a_family_that_has_used_up_its_tokens_ends_and_the_root_can_say_so(tmp_path: Path) -> None:
    """A31: agents of agents could spend without end while the root waits."""

    async def root(stage: Stage) -> None:
        await stage.start("spender")
        reply = await stage.events.delegate(WaitForAgents())
        assert (reply.agents[0].state, "used up" in reply.agents[0].error) == ("failed", True)
        assert "used up" in await stage.refused("spender")
        await stage.say("too dear")

    async def spender(stage: Stage) -> None:
        stage.events.emit(UsageGained(Usage(prompt_tokens=90, completion_tokens=10)))
        await forever(stage)

    async with EngineWorld(tmp_path, Cast(root=root, spender=spender), limited(max_tokens=100)) as world:
        workspace = await world.open()
        _, run_id = await prompted(workspace)
        await world.idle(workspace)
        assert (await workspace.run(run_id)).state == "completed"


async def test_a_family_that_has_used_up_its_time_ends(tmp_path: Path) -> None:
    """A31: an agent that hangs must not hang for ever."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        reply = await stage.events.delegate(WaitForAgents())
        assert (reply.agents[0].state, "minutes" in reply.agents[0].error) == ("failed", True)

    async with EngineWorld(tmp_path, Cast(root=root, child=forever), limited(max_time="50ms")) as world:
        workspace = await world.open()
        _, run_id = await prompted(workspace)
        await world.idle(workspace)
        assert (await workspace.run(run_id)).state == "completed"


async def test_steering_reaches_a_running_agent_and_sets_an_idle_one_to_work(tmp_path: Path) -> None:
    """B72 B14: the parent must be able to correct what it has set going."""
    heard: list[str] = []

    async def root(stage: Stage) -> None:
        child = await stage.start("child")
        await stage.events.delegate(SteerAgent(child.id, "turn left"))
        await stage.events.delegate(WaitForAgents())
        await stage.events.delegate(SteerAgent(child.id, "again"))
        reply = await stage.events.delegate(WaitForAgents())
        assert reply.agents[0].text == "did it again"

    async def child(stage: Stage) -> None:
        message = await stage.steer.next()
        stage.events.emit(SteerTaken(message.run_id))
        heard.append(message.text)

    async def again(stage: Stage) -> None:
        await stage.say("did it again")

    async with EngineWorld(tmp_path, Cast(root=root, child=child, again=again)) as world:
        workspace = await world.open()
        await prompted(workspace)
        await world.idle(workspace)
        ends = [(run.prompt, run.state) for run in await terminals(world, workspace)]
    assert heard == ["turn left"]
    assert ends == [("child", "completed"), ("turn left", "completed"), ("again", "completed"), ("root", "completed")]


async def test_an_agent_reaches_its_own_agents_and_no_other_session(tmp_path: Path) -> None:
    """A31 A15: an id it heard of somewhere must not let it steer somebody else's work."""
    stranger = ""
    errors: list[str] = []

    async def root(stage: Stage) -> None:
        await stage.start("child")
        for request in (SteerAgent(stranger, "x"), CancelAgent(stranger), MessageAgent(stranger, "x")):
            errors.append((await stage.events.delegate(request)).error)
        errors.append((await stage.events.delegate(WaitForAgents((stranger,)))).error)
        errors.append((await stage.events.delegate(CancelAgent(stage.spec.session_id))).error)
        listed = await stage.events.delegate(ListAgents())
        assert [agent.title for agent in listed.agents] == ["general: child"]

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        stranger = (await workspace.create_session("", BY)).id
        await prompted(workspace)
        await world.idle(workspace)
    assert len(errors) == 5 and all("You have no agent" in error for error in errors)


async def test_deleting_a_session_deletes_its_agents_sessions(tmp_path: Path) -> None:
    """B45: the content of a conversation is also what its agents read and wrote for it."""

    async def root(stage: Stage) -> None:
        await stage.start("child")
        await forever(stage)

    cast = Cast(root=root, child=forever)
    async with EngineWorld(tmp_path, cast) as world:
        workspace = await world.open()
        session_id, _ = await prompted(workspace)
        await cast.on_stage("child")
        (child,) = workspace.sessions.children(session_id)
        await workspace.delete_session(session_id, BY)
        assert not workspace.sessions.has(child.id)
        assert await reading.sessions(workspace, "") == []
        assert await reading.sessions(workspace, session_id) == []


async def test_an_unknown_role_model_and_an_empty_task_are_refused_with_what_there_is(tmp_path: Path) -> None:
    """The model reads the refusal and does better; without the names it can only guess."""
    errors: list[str] = []

    async def root(stage: Stage) -> None:
        errors.append(await stage.refused("x", role="nobody"))
        errors.append(await stage.refused("  "))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        await prompted(workspace)
        await world.idle(workspace)
    assert "There are: explore, general" in errors[0] and "empty" in errors[1]
