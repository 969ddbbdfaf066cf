"""A pool that is made when a run first needs it: a server that runs all by itself never loads a WebSocket library."""

import asyncio
from typing import TYPE_CHECKING

from windlass.wire.execution import Cancel, Events, Executor, RunOutcome, RunSpec, Steer
from windlass.wire.worker import WorkerSpec

if TYPE_CHECKING:
    from windlass.fleet.pool.pool import Pool
    from windlass.fleet.pool.spawn import InputSpawner


class LazyPool:
    """Makes executors for workers of one pool. Close it with `aclose`."""

    def __init__(self, spawner: "InputSpawner", environment: dict[str, str]) -> None:
        self._spawner = spawner
        self._environment = environment
        self._loading: asyncio.Task[Pool] | None = None

    def executor(self, spec: WorkerSpec, depth: int) -> Executor:
        return _Placed(self, spec, depth)

    async def get(self) -> "Pool":
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.create_task(self._load(), name="load the pool")
        # Shielded: the run that asked first may be cancelled while another waits.
        return await asyncio.shield(self._loading)

    async def _load(self) -> "Pool":
        # In a thread: it takes a fifth of a second, in which nobody would be served.
        return await asyncio.to_thread(_make, self._spawner, self._environment)

    async def aclose(self) -> None:
        """End every worker."""
        if self._loading is not None:
            await asyncio.wait({self._loading})
            if self._loading.exception() is None:
                await self._loading.result().aclose()


class _Placed:
    """One run in a worker of the pool."""

    def __init__(self, pool: LazyPool, spec: WorkerSpec, depth: int) -> None:
        self._pool = pool
        self._spec = spec
        self._depth = depth

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        pool = await self._pool.get()
        from windlass.fleet.pool.pooled import PooledExecutor

        return await PooledExecutor(pool, self._spec, depth=self._depth).run(spec, events, steer, cancel)


def _make(spawner: "InputSpawner", environment: dict[str, str]) -> "Pool":
    import windlass.fleet.pool.pooled  # noqa: F401  # all that a run will need
    from windlass.fleet.pool.pool import Pool

    return Pool(spawner, environment)
