"""The lock of a data directory: one process writes it, and everyone else is told who."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from windlass.errors import Conflict


@contextlib.contextmanager
def only_writer(data_dir: Path) -> Iterator[None]:
    """Hold the lock, or raise Conflict: two writers would corrupt each other's log (I18, A14)."""
    try:
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Conflict(f"{data_dir / 'lock'} cannot be used: {error.strerror}. Remove it.") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise Conflict(
                f"Another server (process {owner}) already uses {data_dir}. Stop it, or choose another --data-dir."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
