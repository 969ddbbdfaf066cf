"""Where the shell of a session stands: `cd` in one call lasts for the next."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from windlass import limits
from windlass.wire.messages import Message, ToolResult


class _Told(msgspec.Struct):
    """What a result of `bash` says of the place it ended in."""

    cwd: str = ""


class Place(NamedTuple):
    """A directory, what it is to the kernel (another one at the same path is not the same), and what to say of it."""

    path: str
    identity: tuple[int, int]
    note: str = ""


class Whereabouts:
    """The directory that the next command of a run starts in."""

    def __init__(self, root: str, directory: str = "") -> None:
        self._root = root
        self._directory = directory or root

    def now(self) -> Place:
        """Where the next command starts: where the last one ended, or the root, if that is gone. Raises OSError."""
        try:
            return Place(self._directory, identity(self._directory))
        except OSError:
            if self._directory == self._root:
                raise
        # It stays where it stood until a command has run: one that was declined tells the model nothing.
        return Place(self._root, identity(self._root), f"{self._directory} is gone, so this ran in {self._root}.")

    @property
    def directory(self) -> str:
        return self._directory

    def move(self, directory: str) -> None:
        self._directory = directory


def identity(path: str) -> tuple[int, int]:
    """Which directory a path means now; raises OSError when it means none."""
    status = os.stat(path + "/.")  # with the dot: a file at its place is an error too
    return status.st_dev, status.st_ino


def last_directory(messages: Sequence[Message]) -> str:
    """Where the newest command of a conversation ended, "" if none says."""
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, ToolResult) and part.data.name == "bash":
                try:
                    told = msgspec.json.decode(part.data.metadata or "{}", type=_Told)
                except msgspec.DecodeError:
                    continue  # written by another version, or by a worker that is not ours
                if told.cwd.startswith("/") and "\0" not in told.cwd:
                    return told.cwd
    return ""


def take_report(path: str) -> str:
    """The directory that a command left in its report, "" if it left none that can be used. Removes it. Blocks."""
    try:
        # O_NONBLOCK and a bound: a command can put anything in its place.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        raw = os.read(descriptor, limits.PATH_CHARACTERS + 2)
        os.unlink(path)
        directory = raw.removesuffix(b"\n").decode()
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(descriptor)
    return (
        directory if directory.startswith("/") and len(raw) <= limits.PATH_CHARACTERS and "\0" not in directory else ""
    )
