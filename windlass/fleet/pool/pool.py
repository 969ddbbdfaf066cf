"""Warm workers: a run gets one that was started for exactly what it needs, and leaves it to the next (B60).

Workers are keyed by everything that was fixed at their start. Who gets which worker, and whether one is kept, is
decided by plain functions without an await (also `shelf.py` and `slots.py`); what must be awaited (a start, a
handshake, an end) is around them.
"""

import asyncio
import hmac
import secrets
import time
from collections.abc import Sequence

import msgspec
import structlog

from windlass import limits
from windlass.fleet.parent.link_errors import LinkError
from windlass.fleet.parent.worker_socket import WorkerSocket, connect
from windlass.fleet.pool.shelf import Shelf
from windlass.fleet.pool.slots import LineTooLong, Slots
from windlass.fleet.pool.spawn import PROGRAM, InputSpawner, WorkerFailed, WorkerProcess, spawn_worker
from windlass.wire.worker import WorkerSpec

logger = structlog.get_logger("windlass.pool")


class PoolLimits(msgspec.Struct, frozen=True):
    """`running` is at one depth: an agent that waits for its agents must not hold the places they wait for."""

    running: int = limits.WORKERS_RUNNING
    waiting: int = limits.WORKERS_WAITING
    idle_per_key: int = limits.WORKERS_IDLE_PER_KEY
    idle: int = limits.WORKERS_IDLE
    uses: int = limits.WORKER_USES
    age_seconds: float = limits.WORKER_AGE_SECONDS
    idle_seconds: float = limits.WORKER_IDLE_SECONDS


_DEFAULTS = PoolLimits()


class PoolStatistics(msgspec.Struct, frozen=True):
    """What it holds now, and what it has done so far."""

    running: int
    waiting: int
    idle: int
    started: int
    reused: int
    ended: int
    found_dead: int
    failed_starts: int


class Lease(msgspec.Struct, frozen=True):
    """A worker for one run, and the connection to it that showed it to be alive."""

    worker: WorkerProcess
    socket: WorkerSocket
    key: str
    depth: int


class Pool:
    """`environment` is what every worker sees of ours: no credential is in it. Close it with `aclose`."""

    def __init__(
        self,
        spawner: InputSpawner,
        environment: dict[str, str],
        bounds: PoolLimits = _DEFAULTS,
        *,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._spawner = spawner
        self._environment = environment
        self._bounds = bounds
        self._program = program
        self._salt = secrets.token_bytes(32)
        self._slots: dict[int, Slots] = {}  # by depth
        self._shelf: Shelf[WorkerProcess] = Shelf(bounds.idle_per_key, bounds.idle)
        self._leased: set[WorkerProcess] = set()
        self._starting: set[asyncio.Task[WorkerProcess]] = set()
        self._ending: dict[WorkerProcess, asyncio.Task[None]] = {}
        self._timers: dict[WorkerProcess, asyncio.TimerHandle] = {}
        self._is_closed = False
        self._started = self._reused = self._ended = self._found_dead = self._failed_starts = 0

    # -- for runs -----------------------------------------------------------------------------------------------------

    async def acquire(self, spec: WorkerSpec, depth: int = 0) -> Lease:
        """A worker that was started for `spec`, warm or new, and is alive; raises WorkerFailed. `release` it."""
        slots = self._slots_at(depth)
        try:
            await slots.take()
        except LineTooLong:
            raise WorkerFailed(f"{slots.waiting} runs already wait for one. Try again later.") from None
        try:
            self._check_open()
            return await self._connected(spec, depth)
        except BaseException:
            slots.give()
            raise

    async def release(self, lease: Lease, clean: bool) -> None:
        """Give it back. `clean`: its run ended and it said goodbye; else it is ended, and this returns when it is gone.

        Cancelling this changes nothing but that it is not waited for: the pool ends it.
        """
        worker = lease.worker
        self._leased.discard(worker)
        keep = clean and not self._is_closed and self._is_fit(worker)
        slots = self._slots_at(lease.depth)
        if keep and self._put(lease.key, worker):
            slots.give()
            return
        ending = self._end(worker)
        # Not before it is gone: a place is a process that runs, and one that is being killed still does.
        ending.add_done_callback(lambda _: slots.give())
        await asyncio.wait({ending})

    async def prewarm(self, spec: WorkerSpec, count: int = 1) -> None:
        """Start workers for runs that will come, as far as the bounds allow. Raises WorkerFailed."""
        key = self._key(spec)
        for _ in range(min(count, self._bounds.idle_per_key) - self._shelf.count(key)):
            self._check_open()
            worker = await self._start(spec)
            if not self._put(key, worker):
                self._end(worker)

    def statistics(self) -> PoolStatistics:
        return PoolStatistics(
            running=len(self._leased),
            waiting=sum(slots.waiting for slots in self._slots.values()),
            idle=len(self._shelf),
            started=self._started,
            reused=self._reused,
            ended=self._ended,
            found_dead=self._found_dead,
            failed_starts=self._failed_starts,
        )

    async def aclose(self) -> None:
        """End every worker, all at the same time, and return when they are gone or the bound of one end has passed."""
        self._is_closed = True
        for slots in self._slots.values():
            slots.close(_leaving)
        for starting in self._starting:
            starting.cancel()
        for worker in [*self._shelf.clear(), *self._leased]:
            self._end(worker)
        if over := {*self._starting, *self._ending.values()}:
            await asyncio.wait(over)

    # -- finding one --------------------------------------------------------------------------------------------------

    async def _connected(self, spec: WorkerSpec, depth: int) -> Lease:
        key = self._key(spec)
        while (worker := self._shelf.take(key)) is not None:
            self._stop_clock(worker)
            if not self._is_fit(worker):
                self._end(worker)
                continue
            try:
                return await self._leased_to(worker, key, depth)
            except LinkError as error:
                # It died while nobody used it. That must cost a moment, and not a run.
                self._found_dead += 1
                logger.info("a warm worker was dead", pid=worker.pid, reason=str(error))
        worker = await self._start(spec)
        try:
            return await self._leased_to(worker, key, depth)
        except LinkError as error:
            self._failed_starts += 1
            raise WorkerFailed(f"it does not answer. {error}") from None

    async def _leased_to(self, worker: WorkerProcess, key: str, depth: int) -> Lease:
        """Shake hands, which only a live one does. One that does not is ended."""
        self._leased.add(worker)
        try:
            socket = await connect(worker.url, worker.secret)
        except BaseException:
            self._leased.discard(worker)
            self._end(worker)
            raise
        self._reused += worker.uses > 0
        worker.uses += 1
        return Lease(worker, socket, key, depth)

    async def _start(self, spec: WorkerSpec) -> WorkerProcess:
        self._check_open()
        idle_seconds = self._bounds.idle_seconds + limits.WORKER_IDLE_MARGIN_SECONDS
        starting = asyncio.create_task(
            spawn_worker(self._spawner, spec, self._environment, program=self._program, idle_seconds=idle_seconds)
        )
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            worker = await starting
        except WorkerFailed:
            self._failed_starts += 1
            raise
        except asyncio.CancelledError:
            if starting.done() and not starting.cancelled() and starting.exception() is None:
                self._end(starting.result())  # it listened in the moment of the cancel, and nobody else knows of it
            if self._is_closed and not _is_being_cancelled():
                raise _leaving() from None
            raise
        self._started += 1
        return worker

    def _check_open(self) -> None:
        if self._is_closed:
            raise _leaving()

    def _key(self, spec: WorkerSpec) -> str:
        """A digest of all that is fixed at its start. Keyed, so that it tells nothing of a credential in it (A39)."""
        fixed = msgspec.json.encode((msgspec.structs.replace(spec, secret=""), sorted(self._environment.items())))
        return hmac.new(self._salt, fixed, "sha256").hexdigest()

    def _slots_at(self, depth: int) -> Slots:
        return self._slots.setdefault(depth, Slots(self._bounds.running, self._bounds.waiting))

    # -- keeping and ending -------------------------------------------------------------------------------------------

    def _is_fit(self, worker: WorkerProcess) -> bool:
        """Whether it may be given another run."""
        age = time.monotonic() - worker.started_at
        return worker.alive and worker.uses < self._bounds.uses and age < self._bounds.age_seconds

    def _put(self, key: str, worker: WorkerProcess) -> bool:
        """Keep it for the next run; whether there was room. What must go for it is ended."""
        surplus = self._shelf.put(key, worker)
        for other in surplus:
            if other is not worker:
                self._end(other)
        if worker in surplus:
            return False
        self._start_clock(worker)
        return True

    def _start_clock(self, worker: WorkerProcess) -> None:
        """End it when nobody wanted it for so long, or when it has got too old to be wanted."""
        left = self._bounds.age_seconds - (time.monotonic() - worker.started_at)
        seconds = max(0.0, min(self._bounds.idle_seconds, left))
        self._timers[worker] = asyncio.get_running_loop().call_later(seconds, self._expire, worker)

    def _expire(self, worker: WorkerProcess) -> None:
        if self._shelf.remove(worker):
            self._end(worker)

    def _stop_clock(self, worker: WorkerProcess) -> None:
        timer = self._timers.pop(worker, None)
        if timer is not None:
            timer.cancel()

    def _end(self, worker: WorkerProcess) -> "asyncio.Task[None]":
        """The pool's own task ends it, so that no cancel of a run can leave one."""
        self._stop_clock(worker)
        if worker not in self._ending:
            self._ended += 1
            task = self._ending[worker] = asyncio.create_task(worker.close(), name=f"end worker {worker.pid}")
            task.add_done_callback(lambda _: self._ending.pop(worker, None))
        return self._ending[worker]


def _leaving() -> WorkerFailed:
    return WorkerFailed("the server is leaving.")


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
