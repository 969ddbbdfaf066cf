"""What an executor may have changed around it, put back before the next assignment (B60)."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from windlass import limits


class Surroundings:
    """The process as it was before an assignment. For a process that has one assignment at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(thread_name_prefix="assignment")
        self._loop.set_default_executor(self._pool)
        self._environment = dict(os.environ)
        self._directory = os.getcwd()
        self._threads = set(threading.enumerate())
        self._tasks = asyncio.all_tasks()

    async def restore(self) -> bool:
        """Put everything back. False: something does not end, and nothing more should be done in this process."""
        ended = await self._end_tasks()
        # Threads of the pool that are idle end now; one that is not is found below.
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="between"))
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        try:
            os.chdir(self._directory)
        except OSError:
            return False
        return await self._threads_ended() and ended

    async def _end_tasks(self) -> bool:
        """Tasks that were left behind are cancelled: they would go on working for a run that is over."""
        left = asyncio.all_tasks() - self._tasks - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if not left:
            return True
        _, running = await asyncio.wait(left, timeout=limits.WORKER_SWEEP_SECONDS)
        return not running

    async def _threads_ended(self) -> bool:
        deadline = time.monotonic() + limits.WORKER_SWEEP_SECONDS
        while set(threading.enumerate()) - self._threads:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(limits.WORKER_SWEEP_PAUSE_SECONDS)
        return True
