"""The thread that writes. It takes a batch, commits it, and tells the loop; then it takes the next one.

There is no timer: what is staged while one commit runs is the next one's batch (natural group commit).
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from windlass.journal.records import Record

Result = TypeVar("Result")
Done = Callable[[BaseException | None], None]


class Backend(Protocol):
    """Where facts are kept. SQLite now; a server's database later."""

    def commit(self, records: Sequence[Record]) -> None: ...

    def read(self, query: Callable[..., Result], *arguments: Any) -> Result: ...

    def close(self) -> None: ...


class Writer(Protocol):
    """How the loop reaches the backend without waiting for it. The simulation brings one that works inline."""

    def submit(self, records: Sequence[Record], done: Done) -> None:
        """Commit; then call `done` on the loop, with the error if there was one. One batch at a time."""

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result: ...

    async def close(self) -> None: ...


class ThreadWriter:
    """One thread that commits, and two that read."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._loop = asyncio.get_running_loop()
        self._batches: queue.SimpleQueue[tuple[Sequence[Record], Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="journal-writer", daemon=True)
        self._thread.start()
        self._readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="journal-reader")

    def submit(self, records: Sequence[Record], done: Done) -> None:
        self._batches.put((records, done))

    def _work(self) -> None:
        while (item := self._batches.get()) is not None:
            records, done = item
            error: BaseException | None = None
            try:
                self._backend.commit(records)
            except Exception as caught:
                error = caught
            self._loop.call_soon_threadsafe(done, error)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        return await self._loop.run_in_executor(self._readers, self._backend.read, query, *arguments)

    async def close(self) -> None:
        self._batches.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        await self._loop.run_in_executor(None, self._readers.shutdown)
        self._backend.close()
