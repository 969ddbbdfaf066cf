"""What a worker prints: read as it comes, so that it never blocks on a full pipe, and kept only in part."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

from windlass import limits

_PIECE_BYTES = 8 * limits.KIB  # one read: thousands of lines at most, and others have a turn


class WorkerOutput:
    """Lines of a worker's standard output and error, each handed to `on_line` as it ends. Owns the descriptor.

    Works on any asyncio loop. A line longer than WORKER_LINE_BYTES is cut there; `last` keeps the newest few.
    """

    def __init__(self, descriptor: int, on_line: Callable[[str], None]) -> None:
        self.last: deque[str] = deque(maxlen=limits.WORKER_LAST_LINES)
        self._descriptor = descriptor
        self._on_line = on_line
        self._line = bytearray()
        self._second = 0.0  # when the one began in which lines are counted
        self._told = 0
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._take)

    def close(self) -> None:
        """Take what is still in the pipe, and close it. Harmless when it is closed."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._descriptor)
            # Bounded, because a writer that we were not allowed to kill could go on for ever.
            for _ in range(limits.MIB // _PIECE_BYTES):
                if not self._read():
                    break
            if self._line:
                self._end_line()
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
        first, *others = piece.split(b"\n")
        self._grow(first)
        for line in others:
            self._end_line()
            self._grow(line)
        return piece

    def _grow(self, piece: bytes) -> None:
        self._line += piece[: limits.WORKER_LINE_BYTES - len(self._line)]

    def _end_line(self) -> None:
        line = self._line.decode("utf-8", "replace").rstrip()
        self._line.clear()
        if line:
            self.last.append(line)
            if self._has_room():
                self._on_line(line)

    def _has_room(self) -> bool:
        """A worker that prints without end must not fill our log, nor our loop."""
        now = self._loop.time()
        if now - self._second >= 1.0:
            left_out, self._second, self._told = self._told - limits.WORKER_LINES_PER_SECOND, now, 0
            if left_out > 0:
                self._on_line(f"[{left_out} lines left out]")
        self._told += 1
        return self._told <= limits.WORKER_LINES_PER_SECOND
