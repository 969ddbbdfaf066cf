"""An executor whose runs are executed by workers of a pool."""

from windlass.fleet.parent.link import Drive, unless_cancelled
from windlass.fleet.pool.pool import Lease, Pool
from windlass.fleet.pool.spawn import WorkerFailed
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.worker import WorkerSpec


class PooledExecutor:
    """Each run gets a worker that was started for `spec`, and leaves nothing of itself behind.

    `depth` is how many agents are above this one: places are counted for each depth, because an agent that waits for
    its agents holds one.
    """

    def __init__(self, pool: Pool, spec: WorkerSpec, *, depth: int = 0) -> None:
        self._pool = pool
        self._spec = spec
        self._depth = depth

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        """Execute the run. However it ends, its worker is back in the pool, or gone with all that it started."""
        try:
            lease = await unless_cancelled(cancel, self._pool.acquire(self._spec, self._depth), self._undo)
        except WorkerFailed as error:
            return RunOutcome("failed", str(error))
        if lease is None:
            return RunOutcome("canceled")
        drive = Drive(lease.socket, spec, events, steer, cancel, workspace_path=self._spec.workspace_path)
        try:
            return await drive.run()
        finally:
            await self._pool.release(lease, clean=drive.is_clean)

    async def _undo(self, lease: Lease) -> None:
        """It came in the moment of the cancel: nothing was asked of it, so the next run may have it."""
        clean = False
        try:
            clean = await lease.socket.close()
        finally:
            await self._pool.release(lease, clean)
