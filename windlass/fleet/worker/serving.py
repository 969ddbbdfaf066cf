"""Serving links in one of three modes: who gets in, whose turn it is, and when the worker leaves.

Lives in the link's thread. A connection that fails, is refused or speaks nonsense ends nothing but itself: it uses up
no turn and moves no clock (B50).
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Literal

import msgspec
import structlog

from windlass import limits
from windlass.fleet.worker.connection import Connection, Peer
from windlass.fleet.worker.executor_host import ExecutorHost
from windlass.fleet.worker.handshake import Door, Refusal, Request
from windlass.fleet.worker.tls_listener import TlsListener
from windlass.fleet.worker.turns import Turns
from windlass.fleet.worker.worker_link import WorkerLink

logger = structlog.get_logger("windlass.worker")

_LADDER_SECONDS = limits.STOP_ASK_SECONDS + limits.STOP_ABORT_SECONDS  # until every run has its terminal

Mode = Literal["one", "reusable", "service"]


class Departure(msgspec.Struct, frozen=True):
    """Why a worker left, and the exit code that says so."""

    code: int
    reason: str


class Serving:
    """`patience_seconds`: mode one gives up after it when nobody came, mode reusable leaves when idle for it."""

    def __init__(
        self,
        mode: Mode,
        bound: socket.socket,
        door: Door,
        host: ExecutorHost,
        *,
        tls: ssl.SSLContext | None,
        patience_seconds: float | None,
        workspace_path: str,
    ) -> None:
        self._mode = mode
        self._bound = bound
        self._door = door
        self._host = host
        self._tls = tls
        self._patience = patience_seconds
        self._workspace_path = workspace_path
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._links: set[WorkerLink] = set()
        self._busy: set[WorkerLink] = set()
        self._turns: Turns[WorkerLink] = Turns()
        self._served: WorkerLink | None = None  # whose turn it was when we last looked
        self._abandoned = 0
        self._departure: asyncio.Future[tuple[Departure, float]] = self._loop.create_future()
        self._fewer = asyncio.Event()
        self._is_overdue = False
        self._clock: asyncio.TimerHandle | None = None
        self._turn_timer: asyncio.TimerHandle | None = None

    async def run(self, listening: Callable[[], None]) -> Departure:
        """Serve until it is time to leave; `listening` is told once connections are accepted."""
        close = await self._listen()
        self._restart_clock()
        listening()
        departure, seconds = await self._departure
        await close()
        await self._say_goodbye(departure, seconds)
        return departure

    async def _listen(self) -> Callable[[], Awaitable[None]]:
        """Accept connections; what is returned ends that."""
        if self._tls is not None:
            return TlsListener(self._bound, self._tls, self._knock).aclose
        server = await self._loop.create_server(self._knock, sock=self._bound, backlog=limits.WORKER_CONNECTIONS)

        async def close() -> None:
            server.close()

        return close

    def leave(self, code: int, reason: str, seconds: float = _LADDER_SECONDS) -> None:
        """Stop accepting, stop the runs, send their terminals, and go. `seconds`: for the runs to stop."""
        if not self._departure.done():
            self._departure.set_result((Departure(code, reason), seconds))
            # After it is decided: a program of somebody's may log to where nobody reads any more, which raises.
            logger.info("worker leaves", reason=reason, code=code)

    async def _say_goodbye(self, departure: Departure, seconds: float) -> None:
        for timer in (self._clock, self._turn_timer):
            if timer is not None:
                timer.cancel()
        for link in list(self._links):
            link.wind_up(departure.reason)
        for connection in list(self._connections):
            if not connection.is_open:
                connection.abort()  # still knocking, or closing already
        for patience in (seconds + limits.LINK_CLOSE_SECONDS, limits.LINK_CLOSE_SECONDS):
            try:
                async with asyncio.timeout(patience):
                    while self._connections or self._links:
                        self._fewer.clear()
                        await self._fewer.wait()
                return
            except TimeoutError:
                for connection in list(self._connections):
                    connection.abort()

    # -- connections --------------------------------------------------------------------------------------------------

    def _knock(self) -> Connection:
        connection = Connection(self._judge, self._opened, self._gone)
        self._connections.add(connection)
        return connection

    def _judge(self, request: Request) -> str:
        subprotocol = self._door.judge(request)
        if len(self._connections) > limits.WORKER_CONNECTIONS or self._departure.done():
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the worker takes no more connections")
        if self._abandoned >= limits.WORKER_ABANDONED_RUNS:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many runs ignore their cancel; restart the worker")
        return subprotocol

    def _opened(self, connection: Connection) -> Peer:
        link = WorkerLink(connection, self._host, self, self._workspace_path)
        self._links.add(link)
        if self._mode == "service":
            link.begin()
        else:
            link.hold()
            self._turns.enter(link)
            self._look()
        return link

    def _gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._fewer.set()

    # -- LinkOwner ----------------------------------------------------------------------------------------------------

    def link_changed(self, link: WorkerLink) -> None:
        if link.is_over:
            self._links.discard(link)
            self._fewer.set()
            self._turns.leave(link)
            if self._mode == "one" and link.was_used:
                self.leave(0, "the connection is served")
        if link in self._busy and not link.is_busy:
            self._restart_clock()
        (self._busy.add if link.is_busy else self._busy.discard)(link)
        self._look()

    def executor_stuck(self, link: WorkerLink) -> None:
        self._abandoned += 1
        if self._mode != "service":
            self.leave(0, "a run left something behind that does not end")

    # -- turns and clocks ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Give the turn to whoever has it now, and see whether it is time to leave."""
        if self._departure.done() or self._mode == "service":
            return
        served = self._turns.current
        if served is not None and served.is_soiled and self._turns.give_way():
            served.hold()
            served = self._turns.current
        if served is not self._served:
            self._served = served
            if served is not None:
                served.begin()
        self._watch_turn()
        self._check_clock()

    def _watch_turn(self) -> None:
        """Silence is allowed, but not at the expense of others."""
        waits = self._turns.others_wait and self._served is not None and not self._served.was_used
        if waits and self._turn_timer is None:
            self._turn_timer = self._loop.call_later(limits.WORKER_TURN_SECONDS, self._turn_is_up)
        elif not waits and self._turn_timer is not None:
            self._turn_timer.cancel()
            self._turn_timer = None

    def _turn_is_up(self) -> None:
        self._turn_timer = None
        served = self._turns.current
        if served is not None and self._turns.give_way():
            served.hold()
        self._look()

    def _restart_clock(self) -> None:
        if self._patience is None or self._mode == "service" or self._departure.done():
            return
        self._is_overdue = False
        if self._clock is not None:
            self._clock.cancel()
        self._clock = self._loop.call_later(self._patience, self._time_is_up)

    def _time_is_up(self) -> None:
        self._is_overdue = True
        self._check_clock()

    def _check_clock(self) -> None:
        if not self._is_overdue or self._busy:
            return
        if self._mode == "one":
            if not self._turns.is_expected and not any(link.was_used for link in self._links):
                self.leave(1, f"nobody connected and assigned anything within {self._patience:g} s")
        elif self._turns.idles_before_others:
            assert self._served is not None
            self._served.wind_up("idle, and others wait")
        elif not self._turns.is_expected:
            self.leave(0, f"idle for {self._patience:g} s")
