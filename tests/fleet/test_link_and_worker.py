"""Both ends of a link together: our parent's executor, and a real worker with the echo behind it (B73)."""

import asyncio

import msgspec

from tests.fleet.own_worker import own_worker
from tests.fleet.recorder import World
from tests.fleet.test_worker_executors import WaitsForTheDisk
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.execution import Cancel, Events, PermissionAsk, RunOutcome, RunSpec, Steer
from windlass.wire.messages import ToolResult, ToolResultData
from windlass.wire.run_events import Delta, FileWritten, MessageStart, TitleSuggested, ToolEnded


async def run(world: World, url: str) -> RunOutcome:
    async with asyncio.timeout(20):
        return await RemoteExecutor(url).run(world.spec, world.events, world.steer, world.cancel)


async def test_a_run_in_a_worker_is_as_one_in_this_process() -> None:
    """The executor contract would mean one thing here and another over a link (B73)."""
    world = World("hello wide world")
    async with own_worker() as worker:
        outcome = await run(world, worker.url)
    assert outcome.status == "completed"
    assert world.events.text == "hello wide world "
    assert world.events.kinds == ["MessageStart", "Delta", "Delta", "Delta", "MessageEnd"]


async def test_people_reach_a_run_in_a_worker() -> None:
    """Steering and approvals would stop at the process's border (B54 B55)."""
    world = World("__steer __approve:/etc/passwd")
    world.steer.say("left")
    async with own_worker() as worker:
        outcome = await run(world, worker.url)
    assert outcome.status == "completed"
    assert world.events.text == "left approved:true "
    assert world.events.asked[0].resource == "/etc/passwd"


async def test_what_must_be_on_disk_is_waited_for_across_the_link() -> None:
    """A tool in a worker would run before its call is on the parent's disk (design 6)."""
    world = World("x")
    world.events.disk.clear()
    async with own_worker(WaitsForTheDisk) as worker:
        running = asyncio.create_task(run(world, worker.url))
        await world.events.until(lambda: len(world.events.events) == 3)
        assert not running.done()
        world.events.disk.set()
        outcome = await running
    assert (outcome.status, outcome.transcript) == ("completed", {"steps": [1, 2, 3, 4]})


async def test_a_cancel_at_the_parent_ends_the_run_in_the_worker() -> None:
    """It would go on, and cost, unseen (B18 B52)."""
    world = World("begun __sleep_ms:60000")
    async with own_worker() as worker:
        running = asyncio.create_task(run(world, worker.url))
        await world.events.until(lambda: world.events.text == "begun ")
        world.cancel.set()
        assert (await running).status == "canceled"
        again = World("next")
        assert (await run(again, worker.url)).status == "completed"


async def test_a_failure_in_the_worker_is_told_at_the_parent() -> None:
    """A person would see a run fail without a reason (B58)."""
    world = World("__fail")
    async with own_worker() as worker:
        outcome = await run(world, worker.url)
    assert outcome.status == "failed"
    assert "__fail" in outcome.error


class Works:
    """Emits what an agent emits beside its answer, and tells what it was told of its run."""

    said = (
        TitleSuggested("Ropes"),
        MessageStart("m1", "assistant", is_summary=True),
        MessageStart("m2", "tool"),
        Delta("m2", 0, "content", "half", "tool_result", "c1", "bash"),
        ToolEnded("m2", ToolResult(ToolResultData("c1", "bash", "half and half", "{}", False))),
        FileWritten("/w/a", "new", None),
        FileWritten("/w/b", "bmV3", "b2xk", "base64", "base64"),
        FileWritten("/w/c", "unknown before"),
    )

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        for event in self.said:
            await events.durable(event)
        await events.approve(PermissionAsk("c1", "view", "read", "look", "/w", "/w/a", read_only=True))
        return RunOutcome("completed", transcript=[spec.purpose, spec.plan, spec.wants_title, spec.max_cost])


async def test_what_an_agent_does_beside_answering_crosses_the_link_as_it_is() -> None:
    """B73: streamed output, undo, summaries, titles, plan mode and a limit would work in the server's process alone."""
    world = World("x")
    world.spec = msgspec.structs.replace(world.spec, purpose="summarize", plan=True, wants_title=True, max_cost=0.5)
    async with own_worker(Works) as worker:
        outcome = await run(world, worker.url)
    assert outcome.transcript == ["summarize", True, True, 0.5]
    assert world.events.events == list(Works.said)
    assert [ask.read_only for ask in world.events.asked] == [True]
