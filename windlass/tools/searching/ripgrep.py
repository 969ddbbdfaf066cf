"""ripgrep, if it is installed: which files are worth searching. It never decides what is found (`prefilter.py`)."""

import os
import resource
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping

from windlass import limits
from windlass.tools.searching.walk import File

_OPTIONS = (
    "--no-config", "--files-with-matches", "--null", "--text", "--no-unicode", "--encoding=none", "--no-messages",
    "--color=never", "--threads=4", "--max-columns=0", "--no-mmap",
)  # fmt: skip


def find_ripgrep(environ: Mapping[str, str], workspace: str) -> str:
    """The program, "" if there is none. One inside the workspace is not ours to run: a tool may have written it."""
    for directory in environ.get("PATH", "").split(":"):
        program = os.path.realpath(os.path.join(directory, "rg"))
        inside = program.startswith(workspace.rstrip("/") + "/")
        if directory.startswith("/") and not inside and _is_program(program):
            return program
    return ""


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False


class Ripgrep:
    """Leaves out files that have no line which fits the pattern. Works in the current directory.

    `prepare` is called in each ripgrep process before it starts.
    """

    def __init__(self, program: str, pattern: str, prepare: Callable[[], None]) -> None:
        self._program = program
        self._pattern = pattern
        self._prepare = prepare

    def worth_searching(self, files: Iterable[File]) -> Iterator[tuple[File, bool]]:
        """Every file in its order, and whether it is worth searching."""
        for batch in _batches(files):
            chosen = self._chosen([file.path for file in batch if file.size <= limits.FILE_READ_BYTES])
            for file in batch:
                yield file, chosen is None or file.path in chosen

    def _chosen(self, paths: list[str]) -> set[str] | None:
        """The paths that ripgrep names; None if it cannot tell."""
        if not paths:
            return set()
        argv = [self._program, *_OPTIONS, "-e", self._pattern, "--", *paths]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=self._prepared, check=False
        )
        if done.returncode not in (0, 1):
            return None  # it could not read a file, or the pattern is too much for it
        return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}

    def _prepared(self) -> None:
        self._prepare()
        # Our bound on memory is for patterns; ripgrep's never take much, but its threads need room for addresses.
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _batches(files: Iterable[File]) -> Iterator[list[File]]:
    batch: list[File] = []
    room = limits.SEARCH_BATCH_BYTES
    for file in files:
        length = len(os.fsencode(file.path)) + 1
        if batch and (room < length or len(batch) == limits.SEARCH_BATCH_FILES):
            yield batch
            batch, room = [], limits.SEARCH_BATCH_BYTES
        batch.append(file)
        room -= length
    if batch:
        yield batch
