"""Whose turn it is when a worker serves one link after the other. No I/O, no clock."""

from collections import deque
from typing import Generic, Protocol, TypeVar


class Served(Protocol):
    """What is looked at: see WorkerLink."""

    was_used: bool

    @property
    def is_busy(self) -> bool: ...

    @property
    def is_soiled(self) -> bool: ...


Link = TypeVar("Link", bound=Served)


class Turns(Generic[Link]):
    """Links in the order they came. The first has its turn, until it leaves or must give way."""

    def __init__(self) -> None:
        self._line: deque[Link] = deque()

    @property
    def current(self) -> Link | None:
        return self._line[0] if self._line else None

    @property
    def others_wait(self) -> bool:
        return len(self._line) > 1

    def enter(self, link: Link) -> None:
        self._line.append(link)

    def leave(self, link: Link) -> None:
        if link in self._line:
            self._line.remove(link)

    def give_way(self) -> bool:
        """Send the first to the end of the line, if it has done nothing with its turn and somebody waits for it."""
        first = self.current
        if first is None or first.was_used or not self.others_wait:
            return False
        self._line.rotate(-1)
        return True

    @property
    def is_expected(self) -> bool:
        """Somebody came in good order and has not said yet what for: a worker does not leave under him."""
        return any(not link.was_used and not link.is_soiled for link in self._line)

    @property
    def idles_before_others(self) -> bool:
        """The first has had its run, does nothing any more, and somebody waits."""
        first = self.current
        return first is not None and first.was_used and not first.is_busy and self.others_wait
