"""The newest events of a workspace in memory, encoded, bounded by bytes: readers that keep up are served from here.

A reader is a position. Nothing is kept per reader, so a slow one costs nothing: when the tail has moved past it, it
reads from disk (I14).
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

import msgspec

from windlass import limits

EntryKind = Literal["fact", "delta", "note"]


class TailEntry(msgspec.Struct, frozen=True, gc=False):
    """`seq` is the number of the fact, or of the newest fact before what is none. A delta names its message."""

    seq: int
    kind: EntryKind
    data: bytes
    message_id: str = ""


class Tail:
    def __init__(self, seq: int) -> None:
        self._entries: list[TailEntry] = []
        self._first = 0  # absolute index of _entries[0]
        self._size = 0
        self._floor_seq = seq  # every fact after this one is in the tail

    @property
    def first(self) -> int:
        return self._first

    @property
    def end(self) -> int:
        """The absolute index the next entry gets."""
        return self._first + len(self._entries)

    @property
    def size(self) -> int:
        return self._size

    def covers(self, seq: int) -> bool:
        """Whether every fact after `seq` is here."""
        return seq >= self._floor_seq

    def append(self, entry: TailEntry) -> None:
        self._entries.append(entry)
        self._size += len(entry.data)
        if self._size > limits.TAIL_BYTES:
            self._evict(limits.TAIL_BYTES * 3 // 4)

    def _evict(self, target: int) -> None:
        # Down to three quarters at once: deleting one entry from the front of a list for each one that is added would
        # move the whole list every time.
        count = 0
        for entry in self._entries:
            if self._size <= target:
                break
            self._size -= len(entry.data)
            self._floor_seq = entry.seq
            count += 1
        del self._entries[:count]
        self._first += count

    def clear(self, seq: int) -> None:
        """Forget everything up to the fact `seq`."""
        self._first += len(self._entries)
        self._entries.clear()
        self._size = 0
        self._floor_seq = seq

    def index_after(self, seq: int) -> int:
        """The absolute index of the first entry that belongs after the fact `seq`."""
        return self._first + bisect_right(self._entries, seq, key=lambda entry: entry.seq)

    def since(self, index: int) -> Iterator[TailEntry]:
        entries = self._entries
        for position in range(index - self._first, len(entries)):
            yield entries[position]
