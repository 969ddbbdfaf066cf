"""Lines typed (or piped) on standard input, without ever blocking the event loop.

Standard input is not made non-blocking: on a terminal it is the same open file as standard output, and writing would
then fail in the middle of a long answer. Instead the loop says when there is something to read.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from windlass import limits


class Lines:
    """An async iterator of lines, without their ends; it stops at the end of the input."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lines: deque[str] = deque()
        self._rest = bytearray()
        self._ended = False
        self._watching = False
        self._pollable = True

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            if self._ended:
                raise StopAsyncIteration
            self._ready.clear()
            self._watch()
            await self._ready.wait()
        return self._lines.popleft()

    def close(self) -> None:
        if self._watching:
            self._loop.remove_reader(self._descriptor)
            self._watching = False

    def _watch(self) -> None:
        if self._watching:
            return
        if self._pollable:
            try:
                self._loop.add_reader(self._descriptor, self._read)
                self._watching = True
                return
            except PermissionError:
                # A regular file or /dev/null: they cannot be watched, and reading them never waits.
                self._pollable = False
        self._loop.call_soon(self._read)

    def _read(self) -> None:
        chunk = os.read(self._descriptor, 64 * limits.KIB)
        self._ended = not chunk
        self._rest += chunk
        *ended, rest = self._rest.split(b"\n")
        if self._ended or len(rest) > limits.CONSOLE_LINE_BYTES:
            # A line without an end is handed over at its bound: memory must not grow with what someone pipes in.
            ended, rest = [*ended, rest] if rest else ended, bytearray()
        self._rest = rest
        self._lines.extend(line.decode("utf-8", "replace").removesuffix("\r") for line in ended)
        if self._ended or len(self._lines) > limits.CONSOLE_LINES:
            self.close()  # read again when these were taken
        if self._lines or self._ended:
            self._ready.set()
        elif not self._watching:
            self._loop.call_soon(self._read)


@asynccontextmanager
async def typed_lines(descriptor: int = 0) -> AsyncIterator[Lines]:
    lines = Lines(descriptor)
    try:
        yield lines
    finally:
        lines.close()
