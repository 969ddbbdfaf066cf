"""Both ends of a link together: our parent's executor, and a real worker with the echo behind it (B73)."""

import asyncio

from tests.fleet.own_worker import own_worker
from tests.fleet.recorder import World
from tests.fleet.test_worker_executors import WaitsForTheDisk
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.execution import RunOutcome


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
