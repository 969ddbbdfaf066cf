"""That a command lives: what it is at and for how long, on standard error, once that takes longer than a second.

    with working("Summing up"):
        ...

On a terminal it is one line, which is gone at the end. Elsewhere it is one line after some seconds, so that a script's
log shows what it waited for. What takes no time shows nothing at all.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from windlass import limits

_current: "Progress | None" = None  # of this process: a terminal has one last line


@contextmanager
def working(what: str, stream: TextIO | None = None) -> Iterator["Progress"]:
    """Show that this is being done until it is. Within another one it says what that is at for the moment."""
    global _current
    if _current is not None:
        outer, before = _current, _current.what
        outer.what = what
        try:
            yield outer
        finally:
            outer.what = before
        return
    _current = Progress(what, stream or sys.stderr)
    _current.start()
    try:
        yield _current
    finally:
        _current.stop()
        _current = None


@contextmanager
def aside() -> Iterator[None]:
    """Room for a line that stays: ours is away meanwhile, and comes back below it."""
    if _current is None:
        yield
        return
    with _current.away():
        yield


class Progress:
    """A thread of its own shows it: the command may be inside SQLite, or on a loop that has nothing to do."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self.what = what  # may be replaced while it goes on
        self._stream = stream
        self._over = threading.Event()
        self._shown = 0
        self._drawing = (
            threading.Lock()
        )  # the thread draws while the command may print: each whole, one after the other
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take the line away. After this nothing more is written."""
        self._over.set()
        self._thread.join()
        self._erase()

    @contextmanager
    def away(self) -> Iterator[None]:
        with self._drawing:
            self._erase()
            yield

    def _erase(self) -> None:
        if self._shown:
            # Blanks, not an escape code: they erase on every terminal, also with NO_COLOR.
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0

    def _show(self) -> None:
        began = time.monotonic()
        terminal = self._stream.isatty()
        if self._over.wait(limits.PROGRESS_TERMINAL_SECONDS if terminal else limits.PROGRESS_QUIET_SECONDS):
            return
        if not terminal:
            with self._drawing:
                self._stream.write(f"{self.what} takes a while; it goes on.\n")
                self._stream.flush()
            return
        while True:
            with self._drawing:
                self._draw(f"{self.what} ({time.monotonic() - began:.0f} s)")
            if self._over.wait(limits.PROGRESS_TERMINAL_SECONDS):
                return

    def _draw(self, line: str) -> None:
        line = line[: shutil.get_terminal_size().columns - 1]  # a line that wraps could not be taken away
        self._stream.write("\r" + line + " " * (self._shown - len(line)))
        self._stream.flush()
        self._shown = max(self._shown, len(line))
