"""Places for runs: so many at once, the others in line, first come first served."""

import asyncio
from collections import deque
from collections.abc import Callable


class LineTooLong(Exception):
    """So many wait already that waiting makes no sense."""


class Slots:
    """`take` a place, `give` it back. A place goes from hand to hand: whoever comes later cannot overtake the line."""

    def __init__(self, places: int, line: int) -> None:
        self._places = places
        self._line = line
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.taken = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def take(self) -> None:
        if self.taken < self._places:
            self.taken += 1
            return
        if len(self._waiting) >= self._line:
            raise LineTooLong
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give()  # it was called in the very moment it left: the next one's turn
            else:
                self._leave(turn)
            raise

    def _leave(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)

    def give(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.taken -= 1

    def close(self, error: Callable[[], Exception]) -> None:
        """Send everyone in line away, with an error of their own."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(error())
