"""A long past, made quickly: rows that a real server wrote, repeated in its journal while it is stopped."""

import contextlib
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def journal(data_dir: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(data_dir / "journal.db", isolation_level=None)) as database:
        yield database


def repeat_facts(data_dir: Path, workspace: str, total: int) -> int:
    """Append facts like those that are there until there are `total`; returns the number of the last one."""
    with journal(data_dir) as database:
        (head,) = database.execute("SELECT head FROM workspaces WHERE id = ?", (workspace,)).fetchone()
        # Without their keys: they are told again, and are nobody's newest state.
        kept = database.execute(
            "SELECT workspace, batch, time, by, session, run, kind, change, '', body, private FROM facts"
            " WHERE workspace = ? ORDER BY seq",
            (workspace,),
        ).fetchall()
        rows = ((row[0], seq, *row[1:]) for seq in range(head + 1, total + 1) for row in [kept[seq % len(kept)]])
        database.execute("BEGIN")
        database.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        head = max(head, total)
        database.execute("UPDATE workspaces SET head = ? WHERE id = ?", (head, workspace))
        database.execute("COMMIT")
        return int(head)


def repeat_messages(data_dir: Path, workspace: str, source: str, target: str, total: int) -> None:
    """Give the session `target` `total` messages like those of `source`."""
    with journal(data_dir) as database:
        kept = database.execute(
            "SELECT id, run, role, body FROM messages WHERE workspace = ? AND session = ? ORDER BY number, position",
            (workspace, source),
        ).fetchall()
        database.execute("BEGIN")
        for number in range(total):
            id, run, role, body = kept[number % len(kept)]
            new = f"msg_{uuid.uuid4().hex}"
            body = bytes(body).replace(id.encode(), new.encode()).replace(source.encode(), target.encode())
            database.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
                (workspace, new, target, run, number + 1, 0, role, body),
            )
        database.execute("COMMIT")
