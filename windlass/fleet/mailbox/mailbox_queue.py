"""What waits in a mailbox, as one reader remembers it: listing thousands of names for each claim costs too much."""

import os
from collections.abc import Iterator
from pathlib import Path

from windlass.fleet.mailbox.mail_names import MailName, parse


class Queue:
    """The names in new/ from one listing, oldest first.

    Deliveries get higher numbers than all before them, so what was listed stays the beginning of what waits, until a
    message is given back: `returns` in the mailbox's inventory counts these. Used while the mailbox's lock is held.
    """

    def __init__(self, new: Path) -> None:
        self._new = new
        self._names: list[MailName] = []  # the oldest last
        self._returns = -1
        self.strangers: list[Path] = []  # what the last listing found there that no delivery put there

    def oldest(self, returns: int) -> Iterator[MailName]:
        """One name after another, each forgotten once it was handed out. Another reader may have taken it already."""
        if returns == self._returns:
            yield from self._handed_out()
        self._list(returns)
        yield from self._handed_out()

    def _handed_out(self) -> Iterator[MailName]:
        while self._names:
            yield self._names.pop()

    def _list(self, returns: int) -> None:
        self._names, self.strangers = [], []
        self._returns = returns
        for text in sorted(os.listdir(self._new), reverse=True):
            name = parse(text)
            if name is not None:
                self._names.append(name)
            else:
                self.strangers.append(self._new / text)
