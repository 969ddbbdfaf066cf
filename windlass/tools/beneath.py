"""Opening a path beneath a directory so that it cannot lead elsewhere, not even if a symlink is swapped meanwhile.

Checking a path and then opening it is a race that the swapper wins. The kernel can do both in one step (`openat2` with
RESOLVE_BENEATH); where it cannot, the path is walked one component at a time without following any symlink.
"""

import ctypes
import errno
import os
import struct
import sys
from functools import cache

_OPENAT2 = 437  # the same number on every architecture but alpha
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RACES = 16  # EAGAIN: something was renamed during the look-up; a flip every microsecond must not hold us for ever


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` (relative, no `..`; "" is the directory itself). Raises OSError.

    Symlinks are followed as long as they stay beneath and are relative; without openat2 none is followed.
    """
    if openat2_works():
        return _openat2(directory, path or ".", flags)
    return walk_beneath(directory, path, flags)


@cache
def openat2_works() -> bool:
    """An old kernel does not have it, and some containers forbid it."""
    if sys.platform != "linux":
        return False
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(_openat2(descriptor, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _openat2(directory: int, path: str, flags: int) -> int:
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    for _ in range(_RACES):
        descriptor: int = _libc().syscall(_OPENAT2, directory, os.fsencode(path), how, len(how))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(number, os.strerror(number), path)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def walk_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` without following any symlink.

    Each step is one name in a directory that is held open, so what is swapped behind us no longer matters.
    """
    parents, _, last = path.rpartition("/")
    held = enter_beneath(directory, parents)
    try:
        return os.open(last or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
    finally:
        os.close(held)


def enter_beneath(directory: int, path: str, *, create: bool = False) -> int:
    """Open the directory `path` without following any symlink; with `create`, make what is missing of it."""
    held = os.dup(directory)
    for name in path.split("/") if path else []:
        try:
            entered = _enter(held, name, create)
        finally:
            os.close(held)
        held = entered
    return held


def _enter(directory: int, name: str, create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        pass  # somebody was quicker; whatever it is, the open decides
    return os.open(name, flags, dir_fd=directory)
