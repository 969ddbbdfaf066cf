"""The life of one simulated server process: it starts, clients use it, and it ends in one of five ways."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import msgspec

from windlass.errors import JournalPoisoned
from windlass.testing.seeded_writer import Fault
from windlass.testing.sim_client import SimClient
from windlass.testing.sim_server import SimServer
from windlass.testing.sim_world import World
from windlass.testing.simloop import SimLoop

EndKind = Literal["crash", "commit", "drain", "follow", "peace"]
_END_SECONDS = 60.0  # after which a run, a request or a stream that should have ended never will
_POLL_SECONDS = 0.05
_LINGER_SECONDS = 0.3
_RETURN_SECONDS = (0.3, 0.4, 0.5, 0.51, 0.6)  # around the moment when the last grace and the linger are over
_GRACES_SECONDS = 1.0  # longer than any hold lasts
_ABANDONED_SECONDS = 6.0  # longer than an executor that does not stop goes on


class Life(msgspec.Struct, frozen=True):
    """How one server process will end, and when at the latest."""

    end: EndKind
    seconds: float
    fault: Fault | None = None


class SimProcess:
    """`run` returns when the process has left; a crash is raised through it."""

    def __init__(
        self, world: World, server: SimServer, clients: list[SimClient], life: Life, rng: random.Random
    ) -> None:
        self._history = world.history
        self._server = server
        self._clients = clients
        self._life = life
        self._rng = rng

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        if self._life.end in ("crash", "commit"):
            loop.call_later(self._life.seconds, self._server.die, "killed")
        try:
            await self._recover()
        except JournalPoisoned:
            await asyncio.sleep(_END_SECONDS)  # it leaves by itself, long before this is over
        for client in self._clients:
            client.begin(self._server)
        living = [loop.create_task(client.live(), name=f"{client.id} lives") for client in self._clients]
        # Beyond the moment of a crash nothing more is done here.
        await asyncio.sleep(self._life.seconds + _POLL_SECONDS)
        if self._life.end == "peace":
            await self._come_to_rest(living)
        elif self._life.end == "follow":
            await self._follow_the_clients(living)
        await self._stop(living)

    async def _recover(self) -> None:
        """Before the first client comes, every run that was going on in an earlier process has ended (B02)."""
        broken_off = [
            (ledger, run_id)
            for ledger in self._history.ledgers.values()
            for run_id, state in ledger.open_runs.items()
            if state in ("running", "waiting")
        ]
        await self._server.registry.recover()
        for ledger, run_id in broken_off:
            if run_id in ledger.open_runs:
                self._history.violate("I1", f"{run_id} was going on when the server ended, and nobody ended it")

    # -- in peace -----------------------------------------------------------------------------------------------------

    async def _come_to_rest(self, living: list["asyncio.Task[None]"]) -> None:
        """Every run ends, every stream has everything, and when the clients are gone the workspaces close (B31)."""
        await self._rest(living)
        await self._server.journal.settled()  # a prompt that nobody waited for is accepted all the same
        await self._until("I1", "runs that never end", lambda: not self._server.open_runs, self._answer_everything)
        await asyncio.sleep(_POLL_SECONDS)  # for streams that are just being opened
        await self._until("I13", "streams that never get everything", self._all_caught_up)
        for client in self._clients:
            for stream in client.streams:
                stream.complete()
        for client in self._clients:
            await client.hang_up()
        await self._check_quiet()
        await self._clients[0].come_back(0.0)  # perhaps to hang up while the workspace is being opened
        await self._check_quiet()

    async def _check_quiet(self) -> None:
        await asyncio.sleep(_GRACES_SECONDS)
        if not self._server.registry.is_idle:
            self._history.violate("I17", "a workspace that nobody holds and that has no run stays open")

    async def _rest(self, living: list["asyncio.Task[None]"]) -> None:
        self._server.resting = True
        # Questions are answered on the way: deleting a session waits for its runs, and those wait for people.
        await self._until("I19", "requests that are never answered", self._nothing_asked, self._answer_everything)
        await self._end(living)

    def _nothing_asked(self) -> bool:
        return not any(ask.status == "pending" for ask in self._history.asks)

    async def _answer_everything(self) -> None:
        for workspace in self._server.registry.workspaces:
            for permission_id in list(workspace.log.permissions):
                await self._clients[0].answer(workspace, permission_id)
            for batch_id in list(workspace.log.questions):
                await self._clients[0].answer_batch(workspace, batch_id)

    def _all_caught_up(self) -> bool:
        return all(stream.is_caught_up for client in self._clients for stream in client.streams)

    async def _until(
        self,
        invariant: str,
        what: str,
        condition: Callable[[], bool],
        meanwhile: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _END_SECONDS
        while not condition():
            if loop.time() > deadline:
                assert isinstance(loop, SimLoop)
                self._history.violate(invariant, f"{what}; pending: {'; '.join(loop.pending())}")
                return
            if meanwhile is not None:
                await meanwhile()
            await asyncio.sleep(_POLL_SECONDS)

    # -- following its clients ----------------------------------------------------------------------------------------

    async def _follow_the_clients(self, living: list["asyncio.Task[None]"]) -> None:
        """As `--exit-when-idle`: it leaves when its clients have, and never under one that has just come (I17)."""
        await self._rest(living)
        for client in self._clients:
            await client.hang_up()
        server = self._server
        server.on_idle = self._leave_soon
        returns = [
            asyncio.create_task(client.come_back(self._rng.choice(_RETURN_SECONDS)), name=f"{client.id} comes back")
            for client in self._clients
        ]
        await self._until("I17", "a server that nobody needs and that stays", lambda: server.registry.leaving)
        await self._end(returns)

    def _leave_soon(self) -> None:
        if not self._server.closed:
            asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._leave_if_idle)

    def _leave_if_idle(self) -> None:
        if self._server.registry.leaving or not self._server.registry.leave_if_idle():
            return
        for ask in self._history.asks:
            if ask.kind == "create" and ask.status == "pending":
                self._history.violate("I17", f"the server decided to leave under {ask}")

    # -- leaving ------------------------------------------------------------------------------------------------------

    async def _stop(self, living: list["asyncio.Task[None]"]) -> None:
        """As SIGTERM: active runs get a moment, then everything ends, and nothing of it remains (B35, I19)."""
        server = self._server
        server.stopping = True
        self._history.stopped("drains")
        await server.registry.drain(self._rng.choice((0.0, 0.05, 0.3)))
        server.closed = True
        await self._until("I19", "requests that are never answered", self._nothing_asked)
        await self._end(living)
        for client in self._clients:
            await client.hang_up()
        await server.journal.close()
        self._check_timers()
        await asyncio.sleep(_ABANDONED_SECONDS)
        self._check_tasks()

    async def _end(self, living: list["asyncio.Task[None]"]) -> None:
        for task in living:
            await task
        for client in self._clients:
            await client.rest()

    def _check_timers(self) -> None:
        timers = [timer for timer in _loop()._scheduled if not timer.cancelled() and _is_of_the_server(timer)]
        if timers:
            self._history.violate("I19", f"timers are left behind: {timers}")

    def _check_tasks(self) -> None:
        own = asyncio.current_task()
        tasks = [task.get_name() for task in _loop()._in_order() if task is not own and not task.done()]
        if tasks:
            self._history.violate("I19", f"tasks are left behind: {tasks}")


def _loop() -> SimLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop


def _is_of_the_server(timer: asyncio.TimerHandle) -> bool:
    owner = type(getattr(timer._callback, "__self__", None))  # type: ignore[attr-defined]
    return owner.__module__.startswith(("windlass.engine", "windlass.journal"))
