"""Regular files, by descriptor: check that it is one, read it within a bound, replace it whole or not at all.

Everything here is relative to a directory that is already open, so no path is looked up and none can be swapped.
"""

import os
import secrets
import stat

from windlass import limits
from windlass.tools.text import shown
from windlass.wire.tools import ToolError


def check_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a directory, not a file.")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(f"{path} is not a regular file (it is a pipe, a socket or a device).")


def read(descriptor: int, path: str, limit: int) -> bytes:
    """The whole content, or ToolError if it is over `limit` bytes."""
    content = bytearray()
    # One more than allowed: the size in the directory says nothing about a file that grows, or one of /proc.
    while len(content) <= limit and (piece := os.read(descriptor, min(limit + 1 - len(content), limits.MIB))):
        content += piece
    if len(content) > limit:
        raise ToolError(f"{path} is larger than {limit} bytes. Use bash (head, tail, sed -n, grep) to see parts of it.")
    return bytes(content)


def present(directory: int, name: str, path: str) -> os.stat_result | None:
    """What is there now, if it may be replaced."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=directory)
        raise ToolError(
            f"{path} is a symlink to {shown(target)}. Write to the file it points to, by that file's own path."
        )
    check_regular(status, path)
    if not status.st_mode & 0o222:
        # A rename would replace it all the same; whoever made it read-only did not mean that.
        raise ToolError(f"{path} is read-only.")
    return status


def replace(directory: int, name: str, content: bytes, before: os.stat_result | None) -> None:
    """Give the name a new content; it keeps the mode it had `before`."""
    temporary = f".windlass-{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if before is not None:
                os.fchmod(descriptor, before.st_mode & 0o777)
            file.flush()
            # Before the rename: else a power cut could leave the name with nothing behind it.
            os.fsync(descriptor)
        # If the target has become a symlink since we looked, the link itself is replaced: nothing outside is touched.
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise
