"""Files that are there wholly or not at all, and that stay when the power goes."""

import os
import secrets
import stat
from pathlib import Path

from windlass import limits

_TEMPORARY = ".unfinished-"  # nobody else's file begins like this, so leftovers of a crash can be told from files


class Unreadable(Exception):
    """What is at a path cannot be taken for a file of ours; the message says why."""


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file, or make it. Durable when this returns; nobody ever sees a part of it."""
    temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    try:
        write_new(temporary, content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_new(path: Path, content: bytes) -> None:
    """Make the file, its content durable when this returns. Its name is durable once its directory is synced."""
    # O_EXCL and O_NOFOLLOW: a link laid there beforehand is refused instead of followed.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_unfinished(name: str) -> bool:
    """Whether this is what a writer left that was killed before its file had its name."""
    return name.startswith(_TEMPORARY)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: Path) -> None:
    """Make the directory and what is missing above it, for its owner alone, durable when this returns."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)  # exist_ok: another process may be making it too
        sync_directory(directory.parent)


def read_whole(path: Path, most_bytes: int) -> bytes:
    """Read a regular file of at most so many bytes. Raises Unreadable, or FileNotFoundError if nothing is there."""
    try:
        # O_NONBLOCK: a pipe laid there would otherwise hold us up for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unreadable(f"it cannot be opened: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("it is not a regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise Unreadable(f"it has more than {most_bytes // limits.KIB} KiB")
    return content
