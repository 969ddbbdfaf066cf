"""A directory for what commands leave for a moment: where their shell stood, and temporary files of confined ones.

It is locked as long as its process lives. What a process that was killed left behind is found by its lock being free,
and removed by the next one.
"""

import fcntl
import os
import re
import secrets
import shutil
import threading
from contextlib import suppress
from itertools import islice

from windlass import limits

_NAME = re.compile(r"windlass-[0-9a-f]{16}")


class Scratch:
    """`path` is known at once; the directory is there after `make`. Its methods block: call them in a thread."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.realpath(directory)
        self.path = os.path.join(self._directory, f"windlass-{secrets.token_hex(8)}")
        self._lock = -1
        self._making = threading.Lock()

    def make(self) -> None:
        """Make it, or make it again: whoever cleans up temporary files may have taken it for forgotten."""
        with self._making:  # the first commands of two sessions come in two threads
            self._make()

    def _make(self) -> None:
        if not os.path.isdir(self.path):
            self._unlock()
            os.mkdir(self.path, 0o700)
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._remove_forgotten()
        os.makedirs(os.path.join(self.path, "tmp"), mode=0o700, exist_ok=True)

    def remove(self) -> None:
        """Remove it, if it was ever made. Safe to call twice."""
        with self._making:  # a command that was cancelled may be making it just now
            if self._lock >= 0:
                shutil.rmtree(self.path, ignore_errors=True)
                self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _remove_forgotten(self) -> None:
        with os.scandir(self._directory) as entries:
            forgotten = [entry.path for entry in islice(entries, limits.DIRECTORY_SCAN_ENTRIES) if _is_ours(entry.name)]
        for path in forgotten:
            with suppress(OSError):  # gone meanwhile, or in use, as this process's own is
                _remove_if_free(path)


def _is_ours(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _remove_if_free(path: str) -> None:
    # O_NOFOLLOW: anyone may put a link there, and what it leads to is not ours to remove.
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
