"""What is kept back, directory by directory: the names in each that get no rule.

A path is protected as it is written and as it is: every symlink on the way to it is, so that it cannot be pointed
elsewhere, what it leads to is, and so is every other place where the same directory is mounted. It need not exist: then
nobody can make it.
"""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SYMLINKS = 40  # on one way; the kernel follows no more either

Fenced = dict[str, set[str]]  # a directory on the way to something protected: the names in it that get no rule


def fenced(paths: Sequence[str]) -> Fenced:
    """The directories whose other entries are to be granted one by one."""
    ways: Fenced = {"/": set()}
    real = {_walk(path, ways) for path in paths}
    for path in list(real):
        real.update(_walk(alias, ways) for alias in other_places(path, mounts()))
    if os.geteuid() == 0 and os.path.isdir("/dev"):
        ways["/"].add("dev")
        ways.setdefault("/dev", set())
    # One may lie inside another: beside it, but within what is protected, nothing is granted.
    return {way: names for way, names in ways.items() if not any(is_below(way, path) for path in real)}


def is_below(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or inside it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _walk(path: str, ways: Fenced) -> str:
    """Note every directory on the way to `path` and the name that leads on; return where it ends."""
    waiting = _names(path)
    here = "/"
    links = 0
    while waiting:
        name = waiting.pop(0)
        if name == "..":
            here = os.path.dirname(here)
            continue
        ways.setdefault(here, set()).add(name)
        there = os.path.join(here, name)
        if os.path.islink(there) and links < _SYMLINKS:
            links += 1
            target = os.readlink(there)
            here = "/" if target.startswith("/") else here
            waiting = _names(target) + waiting
        elif waiting and not os.path.isdir(there):
            return os.path.join(there, *waiting)  # it does not exist yet, and without its first name it cannot
        else:
            here = there
    return here


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


class Mount(NamedTuple):
    device: str
    root: str  # what of the file system is to be seen
    point: str  # and where


def mounts() -> list[Mount]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.split(" ") for line in file]
    except OSError:
        return []
    return [Mount(field[2], _unescaped(field[3]), _unescaped(field[4])) for field in fields]


def other_places(path: str, mounted: Sequence[Mount]) -> Iterator[str]:
    """Where else the same thing, or a part of it, is to be seen: a directory can be mounted twice."""
    around = [mount for mount in mounted if is_below(path, mount.point)]
    if not around:
        return
    # The deepest; of several at one place the newest, which hides the others.
    home = max(reversed(around), key=lambda mount: len(mount.point))
    inside = _moved(path, home.point, home.root)
    for mount in mounted:
        if mount.device != home.device or mount == home:
            continue
        if is_below(inside, mount.root):
            yield _moved(inside, mount.root, mount.point)
        elif is_below(mount.root, inside):
            yield mount.point


def _moved(path: str, before: str, after: str) -> str:
    """A path below `before` as it would be below `after`."""
    rest = path[len(before.rstrip("/")) :].lstrip("/")
    return os.path.join(after, rest) if rest else after


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
