"""A copy of the journal as it is at one moment, also while a server writes it."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from windlass.errors import Conflict, Invalid


def backup(journal: Path, copy: Path) -> int:
    """Write the journal to a new file that only its owner can read; returns its size in bytes.

    The copy holds everything that was acknowledged before this began. When this returns it is checked, and on disk; if
    it raises, there is no such file. Nobody waits for it: a server that writes meanwhile goes on writing.
    """
    if not journal.exists():
        raise Invalid(f"There is no journal at {journal}.")
    _reserve(copy)
    fresh = copy.with_name(f".{copy.name}.making")
    try:
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        _copy(journal, fresh)
        # Over the empty file that is ours: a backup that was killed leaves nothing that could be taken for a whole one.
        os.replace(fresh, copy)
        _sync_directory(copy.parent)
    except BaseException as error:
        for path in (fresh, copy):
            with suppress(OSError):  # what is no file of ours stays; that must not keep the other one
                path.unlink()
        if isinstance(error, OSError):
            raise Invalid(f"{copy} cannot be written: {error.strerror}.") from None
        raise
    return copy.stat().st_size


def _reserve(copy: Path) -> None:
    """Make the name ours, or refuse: last week's backup must not be replaced by a typing mistake."""
    try:
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        raise Conflict(f"{copy} is there already. Name another file, or remove that one.") from None
    except OSError as error:
        raise Invalid(f"{copy} cannot be written: {error.strerror}.") from None


def _copy(journal: Path, fresh: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(fresh)) as target,
        ):
            source.backup(target)  # all pages in one step: one moment, however much is written meanwhile
            target.execute("PRAGMA journal_mode = DELETE")  # one file, with no other beside it that must not be lost
            (found,) = target.execute("PRAGMA integrity_check").fetchone()
            target.execute("SELECT count(*) FROM workspaces")
    except sqlite3.Error as error:
        raise Invalid(f"{journal} could not be copied: {error}.") from None
    if found != "ok":
        raise Invalid(f"{journal} is damaged: {found}. Restore an older backup.")


def _sync_directory(directory: Path) -> None:
    """A name is on disk only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
