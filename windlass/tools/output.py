"""Reading what a command says, without ever holding more than a bound of it."""

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import NamedTuple

from windlass import limits

_PIECE_BYTES = 64 * limits.KIB  # one read: the size of a pipe's buffer, and short enough for others to have a turn


class Page(NamedTuple):
    """A stretch of a stream, in bytes from its beginning; the next one begins where this one ends."""

    start: int
    end: int
    text: str


class HeadAndTail:
    """The beginning and the end of a stream of bytes, each at most half of `limit`; the middle is only counted."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._half - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        # Only when it is twice too long: moving half a megabyte for every byte that arrives would be quadratic.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def kept_bytes(self) -> int:
        return len(self._head) + len(self._tail)

    @property
    def gap(self) -> tuple[int, int]:
        """The stretch that was not kept; empty when all was."""
        return len(self._head), max(len(self._head), self.total - self._half)

    def page(self, start: int, size: int) -> Page:
        """At most `size` bytes from `start` on, as text; from behind the gap, where that falls into it.

        Characters stay whole: one that is cut by the end of the page is left to the next.
        """
        gap_start, gap_end = self.gap
        start = min(start, self.total)  # or whoever goes on from the end of this page would wait there for ever
        if gap_start <= start < gap_end:
            start = gap_end
        if start < gap_start < gap_end:
            data = bytes(self._head[start : start + size])
        elif start < gap_start:
            data = bytes((self._head[start:] + self._tail[:size])[:size])
        else:
            behind = len(self._tail) - (self.total - start)
            data = bytes(self._tail[max(0, behind) :][:size]) if start < self.total else b""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data)
        left = len(decoder.getstate()[0])
        if left == len(data):
            # Half a character and no more: whoever asks for the next page must get on.
            return Page(start, start + len(data), text + decoder.decode(b"", final=True))
        return Page(start, start + len(data) - left, text)

    def text(self) -> str:
        """What was kept, with a line in place of what was not."""
        tail = self._tail[-self._half :]
        dropped = self.total - len(self._head) - len(tail)
        if not dropped:
            # In one piece: a character may lie across the border of the two.
            return (self._head + tail).decode("utf-8", "replace")
        gap = f"\n[... {dropped} bytes left out ...]\n"
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


class PipeReader:
    """Takes what arrives on a pipe, as it arrives; works on any asyncio loop. Owns and closes the descriptor."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._hand_on = take
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._take)

    def close(self) -> None:
        """Take what is still in the pipe, and close it."""
        self._loop.remove_reader(self._descriptor)
        # Bounded, because a writer that we were not allowed to kill could go on for ever.
        for _ in range(limits.MIB // _PIECE_BYTES):
            if not self._read():
                break
        os.close(self._descriptor)

    def _take(self) -> None:
        if self._read() == b"":
            # The end, for good: a loop that is told so again and again would do nothing else.
            self._loop.remove_reader(self._descriptor)

    def _read(self) -> bytes | None:
        """Take one piece; b"" at the end, None when there is nothing just now."""
        try:
            piece = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return None
        if piece:
            self._hand_on(piece)
        return piece
