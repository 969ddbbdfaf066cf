"""The workspace's directory, held open: the only way tools touch files (A20-A23).

Reading follows symlinks that stay inside (and are relative); writing follows none: a symlink as the target or on the
way to it is refused, because people approve the path they are shown and not the one it leads to. A hard link cannot be
told from a file and is read as one; writing replaces the name and leaves the other names' content alone.
"""

import errno
import fcntl
import os
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from windlass import limits
from windlass.tools.beneath import enter_beneath, open_beneath
from windlass.tools.regular import check_regular, present, read, replace
from windlass.wire.tools import ToolError

# O_NONBLOCK: what has become a FIFO since we looked would otherwise make us wait for a writer, for ever.
_READ_PLAINLY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceRoot:
    """A directory that no path can leave (the `FileRoot` port). Methods block: call them in a thread.

    Safe to use from several threads; `close` may be called while some are still at work.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self._also_called = os.path.normpath(os.path.abspath(path))
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._using = threading.Lock()
        self._replacing = threading.Lock()

    def close(self) -> None:
        with self._using:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """A descriptor of one's own: the number of a closed one may already be another directory's."""
        descriptor = self.duplicate()
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep out whoever else edits this workspace through us: another run, in this process or in a worker."""
        with self._directory() as descriptor:
            # Held by the open directory, which the copies share: it must be let go by name.
            _lock(descriptor)
            try:
                yield
            finally:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)

    # -- paths ----------------------------------------------------------------------------------------------------

    def relative(self, path: str) -> str:
        """The path below the root that is meant, "" for the root itself; raises ToolError for one outside."""
        _check_text(path)
        if path.startswith("/"):
            normal = os.path.normpath(path)
            # normpath keeps two leading slashes, as POSIX allows them a meaning. They have none here.
            inside = self._below("/" + normal.lstrip("/"))
        else:
            inside = os.path.normpath(path)
        if inside is None or inside == ".." or inside.startswith("../"):
            raise ToolError(f"{path} is outside the workspace. Use a path below {self.path}.")
        return "" if inside == "." else inside

    def _below(self, path: str) -> str | None:
        for root in (self.path, self._also_called):
            if path == root:
                return "."
            prefix = root if root.endswith("/") else root + "/"
            if path.startswith(prefix):
                return path.removeprefix(prefix)
        return None

    # -- reading --------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, limit: int) -> bytes:
        """The content of a regular file; raises ToolError for anything else and for one over `limit` bytes."""
        content = self.read_if_exists(path, limit)
        if content is None:
            raise ToolError(f"There is no file {path}.")
        return content

    def read_if_exists(self, path: str, limit: int) -> bytes | None:
        inside = self.relative(path)
        with self._directory() as root, _explained(path):
            try:
                # O_NONBLOCK: opening a FIFO without a writer would otherwise wait for one, for ever.
                descriptor = open_beneath(root, inside, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            except FileNotFoundError:
                return None
            try:
                check_regular(os.fstat(descriptor), path)
                return read(descriptor, path, limit)
            finally:
                os.close(descriptor)

    def list_directory(self, path: str) -> list[tuple[str, str]]:
        """(name, kind) of at most DIRECTORY_SCAN_ENTRIES entries, sorted; kind is file, dir, link or other."""
        inside = self.relative(path)
        with self._directory() as root, _explained(path):
            descriptor = open_beneath(root, inside, os.O_RDONLY | os.O_DIRECTORY)
            try:
                with os.scandir(descriptor) as entries:
                    return sorted(
                        (entry.name, _kind(entry)) for entry in islice(entries, limits.DIRECTORY_SCAN_ENTRIES)
                    )
            finally:
                os.close(descriptor)

    def duplicate(self) -> int:
        """The directory's descriptor, to be handed to a process that searches below it; the caller closes it."""
        with self._using:
            if self._descriptor < 0:
                raise ToolError("The workspace is closed.")
            return os.dup(self._descriptor)

    # -- writing --------------------------------------------------------------------------------------------------

    def read_to_change(self, path: str) -> bytes | None:
        """What is there now (None: nothing), if `replace_bytes` could take it; else ToolError.

        No symlink is followed, as none is when it is written: people would be asked for what is never done.
        """
        parent, _, name = self.check_writable(path).rpartition("/")
        with self._directory() as root, _explained(path):
            try:
                directory = enter_beneath(root, parent)
            except FileNotFoundError:
                return None
            try:
                if present(directory, name, path) is None:
                    return None
                descriptor = os.open(name, _READ_PLAINLY, dir_fd=directory)
                try:
                    check_regular(os.fstat(descriptor), path)
                    return read(descriptor, path, limits.FILE_READ_BYTES)
                finally:
                    os.close(descriptor)
            finally:
                os.close(directory)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Replace or create a regular file, whole or not at all, making missing directories."""
        inside = self.check_writable(path)
        if len(content) > limits.FILE_WRITE_BYTES:
            raise ToolError(f"{len(content)} bytes are too many for one file (at most {limits.FILE_WRITE_BYTES}).")
        parent, _, name = inside.rpartition("/")
        with self._directory() as root, _explained(path):
            directory = enter_beneath(root, parent, create=True)
            try:
                replace(directory, name, content, present(directory, name, path))
            finally:
                os.close(directory)

    def replace_bytes(self, path: str, before: bytes | None, content: bytes | None) -> None:
        """Write (None: remove) only if the file still is `before` (None: still does not exist); else ToolError."""
        # One at a time: two edits that both looked before either wrote would lose one of them.
        with self._replacing, self._alone():
            if self.read_if_exists(path, limits.FILE_READ_BYTES) != before:
                raise ToolError(f"{path} has changed since this was planned. View it again, then redo the change.")
            if content is None:
                self._remove(path)
            else:
                self.write_bytes(path, content)

    def _remove(self, path: str) -> None:
        parent, _, name = self.check_writable(path).rpartition("/")
        with self._directory() as root, _explained(path):
            directory = enter_beneath(root, parent, create=False)
            try:
                present(directory, name, path)  # raises for a symlink and for what is no file
                os.unlink(name, dir_fd=directory)
            finally:
                os.close(directory)

    def check_writable(self, path: str) -> str:
        """The path below the root, if tools may write there at all."""
        inside = self.relative(path)
        if not inside:
            raise ToolError(f"{path} is the workspace's directory, not a file.")
        if any(_is_git(name) for name in inside.split("/")):
            # A hook or a config there is code that runs with the user's next git command (A23).
            raise ToolError(f"{path} belongs to git itself and is not written by tools. Use git commands instead.")
        return inside


def _lock(directory: int) -> None:
    """Wait for our turn, but not for ever: any program can lock a directory and keep it.

    Then, and where the file system has no such locks, edits of two processes in the same instant stay unguarded, as
    they are against any editor.
    """
    deadline = time.monotonic() + limits.EDIT_TURN_SECONDS
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return
            time.sleep(0.005)
        except OSError:
            return


def _check_text(path: str) -> None:
    if len(path) > limits.PATH_CHARACTERS:
        raise ToolError(f"The path has {len(path)} characters; at most {limits.PATH_CHARACTERS} are possible.")
    if "\0" in path:
        raise ToolError("The path contains a NUL character.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ToolError("The path contains characters that are not valid Unicode.") from None


def _is_git(name: str) -> bool:
    """Also where the file system folds case, skips invisible characters or knows DOS names."""
    visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return visible.casefold().rstrip(". ") in (".git", "git~1")


def _kind(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


_REASONS = {
    errno.EXDEV: "it leads out of the workspace",
    errno.ELOOP: "it goes through a symlink that is not followed",
    errno.ENOTDIR: "a part of it is a file or a symlink, where a directory is needed",
    errno.ENXIO: "it is a pipe or a socket, not a regular file",
    errno.ENAMETOOLONG: "a name in it is too long",
    errno.EAGAIN: "it was being changed at that moment; try again",
}


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or "it failed"
        raise ToolError(f"{path or 'The workspace'} cannot be used: {reason}.") from None
