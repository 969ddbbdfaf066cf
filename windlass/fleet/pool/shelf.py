"""Where idle workers stand: so many of a kind, so many in all. Plain decisions; whoever asks ends what is surplus."""

from typing import Generic, TypeVar

W = TypeVar("W")


class Shelf(Generic[W]):
    """The newest of a kind is taken first (its memory is still warm); the one that stood longest makes room."""

    def __init__(self, per_key: int, in_all: int) -> None:
        self._per_key = per_key
        self._in_all = in_all
        self._standing: dict[W, str] = {}  # worker -> its key, the longest standing first

    def __len__(self) -> int:
        return len(self._standing)

    def count(self, key: str) -> int:
        return sum(1 for other in self._standing.values() if other == key)

    def take(self, key: str) -> W | None:
        """One of this kind, which is the taker's from now on."""
        for worker in reversed(self._standing):
            if self._standing[worker] == key:
                del self._standing[worker]
                return worker
        return None

    def put(self, key: str, worker: W) -> list[W]:
        """Take it in; returns those that must go for it, itself perhaps among them."""
        self._standing[worker] = key
        surplus = []
        while self.count(key) > self._per_key:
            surplus.append(self._drop(next(one for one, other in self._standing.items() if other == key)))
        while len(self._standing) > self._in_all:
            surplus.append(self._drop(next(iter(self._standing))))
        return surplus

    def _drop(self, worker: W) -> W:
        del self._standing[worker]
        return worker

    def remove(self, worker: W) -> bool:
        """Whether it was here."""
        return self._standing.pop(worker, None) is not None

    def clear(self) -> list[W]:
        workers = list(self._standing)
        self._standing.clear()
        return workers
