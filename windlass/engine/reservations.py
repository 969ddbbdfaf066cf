"""Run ids that a caller chose, held while they are looked up: the same id and body never creates two runs (I8)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Reservations:
    """Without holding the id, two callers could both find nothing on disk, and both accept."""

    def __init__(self) -> None:
        self._held: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def hold(self, run_id: str) -> AsyncIterator[None]:
        """Have the id to oneself; "" (the server will choose one) needs no holding. Leaving the block gives it back
        in the same turn of the loop, so that a decision taken in it is what the next caller finds."""
        if not run_id:
            yield
            return
        await self._free(run_id)
        mine = self._held[run_id] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._held[run_id]
            mine.set_result(None)

    async def _free(self, run_id: str) -> None:
        while (held := self._held.get(run_id)) is not None:
            await asyncio.shield(held)  # a caller that goes away must not cancel it under the others
