"""Turns: costly work is done by a few at a time, with a bounded number behind them.

A request whose client has left goes on to its end. Without a bound, whoever asks and leaves in a loop piles up work
that nobody waits for, and everybody else waits behind it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass.errors import TooMany


class Turns:
    """`at_once` at work and `waiting` behind them, in the order they came. Belongs to the event loop."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._places = at_once + waiting
        self._taken = 0
        self._turn = asyncio.Semaphore(at_once)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and have it. Raises TooMany, at once, when too many wait already."""
        if self._taken >= self._places:
            raise TooMany("Too many others have asked for the same kind of work. Try again in a moment.", retry_after=1)
        self._taken += 1
        try:
            async with self._turn:
                yield
        finally:
            self._taken -= 1
