"""Durable events of a worker's run: taken in their order, acknowledged when they are on disk."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NoReturn

from windlass import limits
from windlass.fleet.parent.link_errors import ProtocolError


class Acks:
    """One ack says that everything up to a number is on disk, so many commits may be told by one frame.

    Whoever reads the link only adds; `keep_sending` waits for the disk. So a slow disk never holds up a terminal that
    is behind an approval, or a cancel.
    """

    def __init__(self, send: Callable[[int], Awaitable[None]]) -> None:
        self._send = send
        self._pending: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._changed = asyncio.Event()
        self._deaf = False
        self._failure: BaseException | None = None

    def add(self, seq: int, durable: Callable[[], Awaitable[None]]) -> None:
        """Hand the event over, now, and remember to acknowledge it."""
        if len(self._pending) >= limits.LINK_UNACKED_EVENTS:
            raise ProtocolError(f"it waits for more than {limits.LINK_UNACKED_EVENTS} events at once")
        try:
            # A task at once: an awaitable that nobody comes to await would be a coroutine that never ran.
            self._pending.append((seq, asyncio.ensure_future(durable())))
        except asyncio.CancelledError:
            self._deaf = True  # its owner takes nothing any more; this was no cancel of ours, for nothing was awaited
        self._changed.set()

    async def keep_sending(self) -> NoReturn:
        """Raises what the disk raised, if it did."""
        while True:
            self._changed.clear()
            while self._pending:
                await self._first_durable()
                seq = self._take_durable()
                if seq and not self._deaf:
                    await self._send(seq)
            await self._changed.wait()

    async def _first_durable(self) -> None:
        # Not awaited itself: then its being cancelled by a deaf owner would look like our own.
        await asyncio.wait({self._pending[0][1]})

    def _take_durable(self) -> int:
        """Remove what is on disk, as far as there is no gap; the number of the last, 0 for none."""
        last = 0
        while self._pending and self._pending[0][1].done():
            seq, commit = self._pending.popleft()
            if commit.cancelled():
                self._deaf = True
            elif error := commit.exception():
                self._failure = error
                raise error
            else:
                last = seq
        return last

    async def caught_up(self) -> None:
        """Return when everything that was taken so far is on disk, or has failed: `keep_sending` tells which."""
        await self._over()

    async def settled(self) -> None:
        """Return when everything that was taken is on disk; raises what the disk raised."""
        await self._over()
        self._take_durable()
        if self._failure is not None:
            raise self._failure  # `keep_sending` met it first

    async def end(self) -> None:
        """The same, for a link that is gone: nobody is left to be told, not even of a failure."""
        await self._over()
        for _, commit in self._pending:
            if not commit.cancelled():
                commit.exception()
        self._pending.clear()

    async def _over(self) -> None:
        commits = [commit for _, commit in self._pending]
        if commits:
            try:
                await asyncio.wait(commits)
            except asyncio.CancelledError:
                for commit in commits:
                    commit.cancel()
                raise
