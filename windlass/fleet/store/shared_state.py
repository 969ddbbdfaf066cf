"""A small file that processes share under a lock, and that shows whether the last of them finished what it began.

What is in it is a cache of something larger (the files of a mailbox, the sessions of a project). It can be trusted as
long as every process that changed the larger thing came to its end:

- a process that is killed in the middle leaves the mark of `begin`, and its lock is given up by the kernel;
- when the machine goes down, nothing here needs to have reached the disk: the file names the boot it was written in.

Whoever takes the lock next sees either and builds the content anew before it does anything else.
"""

import fcntl
import functools
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from windlass import limits
from windlass.errors import Unavailable

Content = TypeVar("Content")

_FINISHED, _BEGUN = b" ", b"~"  # the first byte of the file
_FILE_BYTES = 512  # written in one piece within one page, so that a kill cannot cut it


class _Record(msgspec.Struct, Generic[Content]):
    boot: str
    content: Content


class Held(Generic[Content]):
    """The file while its lock is held. `content` is None where it cannot be trusted; `last` is what it said anyway."""

    def __init__(self, descriptor: int, shape: type[Content]) -> None:
        self._descriptor = descriptor
        written = os.pread(descriptor, _FILE_BYTES, 0)
        self.last: Content | None = None
        self.same_boot = False
        try:
            record = msgspec.json.decode(written[1:].rstrip(b"\0"), type=_Record[shape])  # type: ignore[valid-type]
        except (ValueError, RecursionError):
            pass  # a new file, or one that somebody edited: it says nothing
        else:
            self.last = record.content
            self.same_boot = record.boot == boot_id()
        trusted = self.same_boot and written[:1] == _FINISHED
        self.content: Content | None = self.last if trusted else None

    def begin(self) -> None:
        """From here to `finish` a process that dies leaves a sign that the content is not to be trusted."""
        os.pwrite(self._descriptor, _BEGUN, 0)

    def finish(self, content: Content) -> None:
        encoded = _FINISHED + msgspec.json.encode(_Record(boot_id(), content))
        assert len(encoded) <= _FILE_BYTES, "what processes share must stay small"
        os.pwrite(self._descriptor, encoded.ljust(_FILE_BYTES), 0)
        self.content = self.last = content
        self.same_boot = True

    def sync(self) -> None:
        """Make what was written last outlive the machine; only needed for what cannot be built anew."""
        os.fdatasync(self._descriptor)


class SharedState(Generic[Content]):
    def __init__(self, path: Path, shape: type[Content]) -> None:
        self._path = path
        self._shape = shape

    @contextmanager
    def locked(self) -> Iterator[Held[Content]]:
        """Hold the lock: one holder at a time, threads and processes alike. Raises Unavailable after a bounded wait."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        # Opened anew each time: the lock belongs to the opened file, so threads exclude each other as well.
        descriptor = os.open(self._path, flags, 0o600)
        try:
            self._wait(descriptor)
            yield Held(descriptor, self._shape)
        finally:
            os.close(descriptor)

    def _wait(self, descriptor: int) -> None:
        # Asking again, not waiting in the kernel: that wait has no bound, and the holder may be stopped (SIGSTOP).
        deadline = time.monotonic() + limits.SHARED_LOCK_SECONDS
        pause = limits.SHARED_LOCK_PAUSE_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"Another process has held {self._path} for {limits.SHARED_LOCK_SECONDS:.0f} s. "
                        f"See which with: fuser {self._path}"
                    ) from None
            time.sleep(random.uniform(0, pause))
            pause = min(pause * 1.2, limits.SHARED_LOCK_PAUSE_MAX_SECONDS)


@functools.cache
def boot_id() -> str:
    """Which life of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
