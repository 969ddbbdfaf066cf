"""Files that only their owner may read: tokens, the address of a running server.

Written whole or not at all, never through a link that somebody else laid there (A13).
"""

import errno
import os
import secrets
import stat
from pathlib import Path

from windlass.errors import WindlassError


class NotPrivate(WindlassError):
    """A file or directory that must be private is not; the message says which and how to mend it."""


def private_directory(path: Path) -> Path:
    """Make the directory (mode 0700), or check that an existing one is ours and nobody else's to write."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        raise NotPrivate(f"{path} cannot be used as a directory: {error.strerror}. Choose another one.") from None
    if status.st_uid != os.getuid():
        raise NotPrivate(f"{path} belongs to another user. Choose another --data-dir.")
    if status.st_mode & 0o077:
        if any(path.iterdir()) and not (path / "tokens.json").exists():
            # Somebody's directory with other things in it: shutting others out of it is not ours to decide.
            raise NotPrivate(f"{path} can be entered by others and holds other files. Choose another --data-dir.")
        os.chmod(path, 0o700)
    return path


def write_private(path: Path, content: bytes) -> None:
    """Replace the file atomically, mode 0600, durable when this returns."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # O_EXCL and O_NOFOLLOW: a link laid there beforehand is refused instead of followed.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_private(path: Path) -> bytes:
    """Read a file that must be a regular one of ours that others cannot read."""
    try:
        # O_NONBLOCK: a pipe laid there would otherwise hold us up for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise NotPrivate(f"{path} is a link. Remove it: what it points to is not ours to read.") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise NotPrivate(f"{path} can be read by others. Run: chmod 600 {path}")
        return file.read()
