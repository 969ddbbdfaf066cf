"""A request about agents that a run in a worker no longer waits for: its owner no longer waits either."""

import asyncio
from typing import Any

from tests.fleet.own_worker import own_worker
from tests.fleet.recorder import Recorder, World
from tests.fleet.scripted_worker import Talk, scripted_worker
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.delegation import AgentsRequest, OwnerReply, WaitForAgents
from windlass.wire.execution import RunOutcome


class Patient(Recorder):
    """Its agents never end; `given_up` is set when nobody waits for them any more."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for = asyncio.Event()
        self.given_up = asyncio.Event()

    async def delegate(self, request: AgentsRequest) -> OwnerReply:
        self.asked_for.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        raise AssertionError


async def run(url: str, world: World) -> RunOutcome:
    async with asyncio.timeout(10):
        return await RemoteExecutor(url).run(world.spec, world.events, world.steer, world.cancel)


async def test_a_wait_that_a_worker_gives_up_is_given_up_by_its_owner() -> None:
    """B72: the owner would hold one more wait each time a run changes its mind, and report to each of them."""
    world = World()
    owner = world.events = Patient()

    class ChangesItsMind:
        async def run(self, spec: Any, events: Any, steer: Any, cancel: Any) -> RunOutcome:
            waiting = asyncio.create_task(events.delegate(WaitForAgents()))
            await owner.asked_for.wait()
            waiting.cancel()
            await owner.given_up.wait()  # while the run goes on: its end would take the request with it
            return RunOutcome("completed")

    async with own_worker(ChangesItsMind) as worker:
        assert (await run(worker.url, world)).status == "completed"


async def test_a_withdrawal_that_comes_too_late_is_nobodys_error() -> None:
    """It crosses the reply on its way: a run must not fail for it."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("agents_request", id="a1", request={"action": "list"})
        await talk.receive("agents_reply")
        await talk.send_of_run("agents_withdrawn", id="a1")
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script) as url:
        assert (await run(url, world)).status == "completed"
