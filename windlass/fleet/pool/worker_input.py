"""A worker's standard input: what it is told at its start, and then its life line."""

import asyncio
import os


class WorkerInput:
    """The writing end of the pipe. While it is open, the worker's parent lives (B59). Owns the descriptor.

    Works on any asyncio loop. What the pipe does not take at once waits here: a large spec never blocks the loop.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting = b""
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        """Once: the one document it is told."""
        self._waiting = data
        self._loop.add_writer(self._descriptor, self._write)

    def _write(self) -> None:
        try:
            self._waiting = self._waiting[os.write(self._descriptor, self._waiting) :]
        except BlockingIOError:
            return
        except OSError:
            self._waiting = b""  # it is gone, and whoever waits for it is told by its end
        if not self._waiting:
            self._loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """Harmless when it is closed."""
        if self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
