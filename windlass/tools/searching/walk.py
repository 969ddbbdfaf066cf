"""Every file below a directory that is held open, in one order, without those that .gitignore excludes.

No symlink is followed, and each directory is opened beneath the root: a tree that is changed meanwhile leads nowhere.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from windlass import limits
from windlass.tools.beneath import open_beneath
from windlass.tools.searching.ignore import IgnoreFile

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO without a writer would otherwise be waited for


@dataclass(frozen=True, slots=True)
class File:
    """A regular file, as it was when its directory was read."""

    path: str
    size: int
    changed_ns: int


class Walk:
    """The files below `start`, sorted by the names of their paths. `complete` is False once something was left out.

    What `start` itself is called does not matter: who names an excluded directory wants to see into it.
    """

    def __init__(self, root: int, start: str) -> None:
        self.complete = True
        self._root = root
        self._start = start
        self._room = limits.SEARCH_ENTRIES

    def __iter__(self) -> Iterator[File]:
        """Raises OSError if `start` cannot be opened; what cannot be opened below it is left out."""
        single = self._single_file()
        if single is not None:
            yield single
            return
        yield from self._below(self._start, self._ignore_files_above(), 0)

    def _single_file(self) -> File | None:
        descriptor = open_beneath(self._root, self._start, _READ)
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is a pipe, a socket or a device")
        return File(self._start, status.st_size, status.st_mtime_ns)

    def _below(self, directory: str, ignored: list[tuple[str, IgnoreFile]], depth: int) -> Iterator[File]:
        entries = self._entries(directory)
        if any(name == ".gitignore" for name, _, _ in entries):
            ignored = self._with_rules_of(directory, ignored)
        for name, mode, status in entries:
            path = f"{directory}/{name}" if directory else name
            is_directory = stat.S_ISDIR(mode)
            if name == ".git" or _excluded(path, name, is_directory, ignored):
                continue
            if not is_directory:
                yield File(path, status.st_size, status.st_mtime_ns)
            elif depth < limits.SEARCH_DEPTH:
                yield from self._below(path, ignored, depth + 1)
            else:
                self.complete = False

    def _entries(self, directory: str) -> list[tuple[str, int, os.stat_result]]:
        """The regular files and directories in it, sorted."""
        if self._room <= 0:
            self.complete = False
            return []
        try:
            descriptor = open_beneath(self._root, directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return []
        try:
            with os.scandir(descriptor) as scanned:
                found = [(entry.name, *_status(entry)) for entry in islice(scanned, limits.DIRECTORY_SCAN_ENTRIES)]
        except OSError:
            return []
        finally:
            os.close(descriptor)
        self._room -= len(found)
        kept = [entry for entry in found if stat.S_ISREG(entry[1]) or stat.S_ISDIR(entry[1])]
        return sorted(kept, key=lambda entry: entry[0])

    def _ignore_files_above(self) -> list[tuple[str, IgnoreFile]]:
        ignored: list[tuple[str, IgnoreFile]] = []
        if self._start:
            names = self._start.split("/")
            for count in range(len(names)):
                ignored = self._with_rules_of("/".join(names[:count]), ignored)
        return ignored

    def _with_rules_of(self, directory: str, ignored: list[tuple[str, IgnoreFile]]) -> list[tuple[str, IgnoreFile]]:
        prefix = f"{directory}/" if directory else ""
        content = read_file(self._root, f"{prefix}.gitignore", limits.GITIGNORE_BYTES, os.O_NOFOLLOW)
        if content is None:
            return ignored
        # As file names are decoded, so that both have the same characters for bytes that are no text.
        return [(prefix, IgnoreFile(content.decode("utf-8", "surrogateescape"))), *ignored]


def _status(entry: "os.DirEntry[str]") -> tuple[int, os.stat_result]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 0, os.stat_result((0,) * 10)  # gone since; neither a file nor a directory
    return status.st_mode, status


def _excluded(path: str, name: str, is_directory: bool, ignored: list[tuple[str, IgnoreFile]]) -> bool:
    for prefix, rules in ignored:
        verdict = rules.excludes(path.removeprefix(prefix), name, is_directory)
        if verdict is not None:
            return verdict
    return False


def read_file(root: int, path: str, limit: int, flags: int = 0) -> bytes | None:
    """The content of a regular file; None if it is none, cannot be read or is over `limit` bytes."""
    try:
        descriptor = open_beneath(root, path, _READ | flags)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        content = bytearray()
        # As much as it said it has, and one more: it may be growing.
        piece_bytes = min(status.st_size, limit) + 1
        while len(content) <= limit and (piece := os.read(descriptor, piece_bytes)):
            content += piece
        return bytes(content) if len(content) <= limit else None
    except OSError:
        return None
    finally:
        os.close(descriptor)
