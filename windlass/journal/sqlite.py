"""The log on SQLite: one transaction a batch, facts and the tables built from them together.

WAL with `synchronous=FULL`: when `commit` returns, the batch survives a power cut. NORMAL is for people who said so in
their config: it loses acknowledged facts then.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, assert_never

from windlass import limits
from windlass.errors import WindlassError
from windlass.journal import view
from windlass.journal.migrations import migrate
from windlass.journal.records import Checkpoint, FactRow, NewWorkspace, Record, Trim

Result = TypeVar("Result")


class JournalUnusable(WindlassError):
    """The file cannot be opened as a journal; the message says why."""


class SqliteBackend:
    """One writing connection for the writer's thread, one reading connection for each reading thread."""

    def __init__(self, path: Path, sync: Literal["full", "normal"] = "full") -> None:
        self._path = path
        self._readers = threading.local()
        self._open_readers: list[sqlite3.Connection] = []
        if path.is_symlink():
            # SQLite would follow it, and make whatever it points to its own (A13).
            raise JournalUnusable(f"{path} is a link. Remove it, or start with another --data-dir.")
        try:
            self._writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                path.chmod(0o600)
                self._batch = self._prepare(sync)
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.Error as error:
            raise JournalUnusable(
                f"{path} cannot be used: {error}. Free some space or mend the file, or start with another --data-dir."
            ) from None

    def _prepare(self, sync: str) -> int:
        """Set the connection up; returns the newest batch."""
        self._writer.execute("PRAGMA journal_mode = WAL")
        self._writer.execute(f"PRAGMA synchronous = {sync.upper()}")
        # Deleting a session must delete its words, not only the way to find them.
        self._writer.execute("PRAGMA secure_delete = ON")
        migrate(self._writer)
        (batch,) = self._writer.execute("SELECT coalesce(max(batch), 0) FROM facts").fetchone()
        return int(batch)

    def commit(self, records: Sequence[Record]) -> None:
        """Write all of it, durably, or raise and write nothing."""
        self._batch += 1
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            for record in records:
                self._write(record)
            self._writer.execute("COMMIT")
            self._forget(records)
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _forget(self, records: Sequence[Record]) -> None:
        """After a session was deleted, its words must not stay in the write-ahead log either."""
        if any(isinstance(r, FactRow) and r.kind == "session" and r.change == "deleted" for r in records):
            with contextlib.suppress(sqlite3.OperationalError):  # a reader is in the way: the next checkpoint does it
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _write(self, record: Record) -> None:
        match record:
            case FactRow():
                self._write_fact(record)
            case Checkpoint():
                self._writer.execute(
                    "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                    (record.workspace, record.message, record.session, record.body),
                )
            case NewWorkspace():
                self._writer.execute(
                    "INSERT INTO workspaces (id, path, epoch, created_at) VALUES (?, ?, ?, ?)",
                    (record.id, record.path, record.epoch, record.created_at),
                )
            case Trim():
                trim(self._writer, record)
            case _:
                assert_never(record)

    def _write_fact(self, row: FactRow) -> None:
        self._writer.execute(
            "INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row.workspace,
                row.seq,
                self._batch,
                row.time,
                row.by,
                row.session,
                row.run,
                row.kind,
                row.change,
                row.key,
                row.body,
                row.private,
            ),
        )
        view.apply(self._writer, row)
        self._writer.execute("UPDATE workspaces SET head = ? WHERE id = ?", (row.seq, row.workspace))

    def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query of `view` on one consistent state, in whatever thread this is called."""
        connection = getattr(self._readers, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA query_only = ON")
            self._readers.connection = connection
            self._open_readers.append(connection)
        connection.execute("BEGIN")
        try:
            return query(connection, *arguments)
        finally:
            connection.execute("COMMIT")

    def close(self) -> None:
        for connection in self._open_readers:
            connection.close()
        self._open_readers.clear()
        self._readers = threading.local()
        self._writer.close()


def trim(connection: sqlite3.Connection, record: Trim) -> None:
    """Move the floor up. What stays at or below it is the newest fact of each key: the snapshot to rebuild from."""
    key = (record.workspace, record.floor)
    connection.execute(
        "DELETE FROM facts WHERE workspace = ?1 AND seq <= ?2 AND (key = '' OR change = 'deleted' OR EXISTS"
        " (SELECT 1 FROM facts newer WHERE newer.workspace = ?1 AND newer.kind = facts.kind AND newer.key = facts.key"
        " AND newer.seq > facts.seq AND newer.seq <= ?2))",
        key,
    )
    # A request that was answered is no state any more; one that still waits stays.
    for kind, table in (("permission_request", "permissions"), ("question_batch_request", "questions")):
        connection.execute(
            "DELETE FROM facts WHERE workspace = ?1 AND seq <= ?2 AND kind = ?3"
            f" AND key NOT IN (SELECT id FROM {table} WHERE workspace = ?1)",
            (*key, kind),
        )
    connection.execute("UPDATE workspaces SET floor = ?2 WHERE id = ?1 AND floor < ?2", key)


def trim_floor(connection: sqlite3.Connection, workspace: str, oldest: float, budget: int) -> int:
    """The floor that keeps facts younger than `oldest` and at most `budget` bytes, at a commit's end; 0 for no change.

    At most TRIM_FACTS are given up at a time, so that trimming never holds up a commit for long.
    """
    row = connection.execute("SELECT floor, head FROM workspaces WHERE id = ?", (workspace,)).fetchone()
    if row is None:
        return 0
    floor, head = row
    (size,) = connection.execute(
        "SELECT coalesce(sum(length(body)), 0) FROM facts WHERE workspace = ? AND seq > ?", (workspace, floor)
    ).fetchone()
    new = 0
    rows = connection.execute(
        "SELECT seq, time, length(body), batch, lead(batch) OVER (ORDER BY seq) FROM facts"
        " WHERE workspace = ? AND seq > ? AND seq <= ? ORDER BY seq",
        (workspace, floor, min(head, floor + limits.TRIM_FACTS)),
    )
    for seq, time, length, batch, next_batch in rows:
        if time >= oldest and size <= budget:
            break
        size -= length
        if next_batch is not None and next_batch != batch:
            new = seq
    return new
