"""One end of a pipe on the event loop: read a piece when it is wanted, write and wait until it is taken.

Nothing is read ahead: whoever writes at the other end waits as long as we do.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable

from windlass import limits

_PIECE_BYTES = 64 * limits.KIB  # one read: the size of a pipe's buffer, and short enough for others to have a turn


class LineTooLong(Exception):
    """A line has more bytes than it may."""


class Pipe:
    """Owns a descriptor. For one reader or one writer at a time; works on any asyncio loop."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()

    async def read(self) -> bytes:
        """The next piece; b"" at the end."""
        await asyncio.sleep(0)  # in a flood every read finds something, and nobody else would have a turn
        while True:
            try:
                return os.read(self._descriptor, _PIECE_BYTES)
            except BlockingIOError:
                await self._until(self._loop.add_reader, self._loop.remove_reader)

    async def lines(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """Every line without its end, until the end of the pipe. Raises LineTooLong; a last one without end is not
        told: whoever wrote it was broken off."""
        kept = bytearray()
        while piece := await self.read():
            *whole, rest = piece.split(b"\n")
            for line in whole:
                yield bytes(kept + line)
                kept.clear()
            kept += rest
            if len(kept) > limit_bytes:
                raise LineTooLong(f"a line has more than {limit_bytes} bytes")

    async def write(self, content: bytes) -> None:
        """Return when all of it is in the pipe; raises BrokenPipeError when nobody reads it any more."""
        left = memoryview(content)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                await self._until(self._loop.add_writer, self._loop.remove_writer)

    async def _until(self, watch: Callable[..., None], forget: Callable[[int], object]) -> None:
        ready = asyncio.Event()
        watch(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            forget(self._descriptor)

    def close(self) -> None:
        """Safe to call twice; nobody may be reading or writing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
