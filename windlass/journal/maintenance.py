"""Work on a journal that no server has open: trim it now, build its tables anew, put a backup in its place.

Every function here is synchronous and expects that the caller holds the data directory's lock.
"""

import os
import sqlite3
import time
from pathlib import Path

from windlass.errors import Invalid
from windlass.ids import new_epoch
from windlass.journal import rebuild, view
from windlass.journal.records import Trim
from windlass.journal.sqlite import SqliteBackend, trim_floor


def prune(path: Path, retention_days: float, retention_bytes: int) -> tuple[int, int]:
    """Trim every log to its bounds and give the space back; the file's size in bytes before and after."""
    before = path.stat().st_size
    backend = SqliteBackend(path)
    try:
        oldest = time.time() - retention_days * 86400.0
        for row in backend.read(view.workspaces):
            while floor := backend.read(trim_floor, row.id, oldest, retention_bytes):
                backend.commit([Trim(row.id, floor)])
    finally:
        backend.close()
    with _connected(path) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, path.stat().st_size


def check(path: Path) -> list[str]:
    """How the tables differ from what the facts say; [] when they do not (I15)."""
    with _connected(path) as connection:
        return rebuild.compare(connection)


def rebuild_tables(path: Path) -> None:
    """Throw the tables away and make them again from the facts, all or nothing."""
    fresh = path.with_name(f".{path.name}.rebuilt")
    fresh.unlink(missing_ok=True)
    try:
        with _connected(path) as source:
            with _connected(fresh) as target:
                rebuild.rebuild(source, target)
            source.execute("ATTACH ? AS made", (str(fresh),))
            source.execute("BEGIN IMMEDIATE")
            for table, columns in rebuild.TABLES.items():
                if table != "workspaces":  # its floors and times are not made of facts
                    source.execute(f"DELETE FROM main.{table}")
                    source.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM made.{table}")
            source.execute(
                "UPDATE main.workspaces SET skip = (SELECT skip FROM made.workspaces m WHERE m.id = workspaces.id)"
            )
            source.execute("COMMIT")
    finally:
        for leftover in path.parent.glob(f"{fresh.name}*"):
            leftover.unlink()


def restore(path: Path, backup: Path) -> int:
    """Put a backup in the journal's place, with a new epoch for every log; returns how many logs it has.

    With the old epoch a client's cursor could point at facts that the backup numbers differently: it must be told.
    """
    with _connected(backup) as source:
        try:
            (found,) = source.execute("PRAGMA integrity_check").fetchone()
            ids = [id for (id,) in source.execute("SELECT id FROM workspaces")]
        except sqlite3.DatabaseError:
            raise Invalid(f"{backup} is not a journal of Windlass.") from None
        if found != "ok":
            raise Invalid(f"{backup} is damaged: {found}.")
        fresh = path.with_name(f".{path.name}.restored")
        fresh.unlink(missing_ok=True)
        with _connected(fresh) as target:
            source.backup(target)
            for id in ids:
                target.execute("UPDATE workspaces SET epoch = ? WHERE id = ?", (new_epoch(), id))
            target.execute("PRAGMA journal_mode = DELETE")
    for name in (f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    fresh.chmod(0o600)
    os.replace(fresh, path)
    return len(ids)


class _connected:
    """A connection that is closed at the end of the block; what was begun and not committed is committed."""

    def __init__(self, path: Path) -> None:
        if not path.exists() and not path.name.startswith("."):
            raise Invalid(f"There is no journal at {path}.")
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._connection.in_transaction:
            self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
        self._connection.close()
