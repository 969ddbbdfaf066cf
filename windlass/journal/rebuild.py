"""The tables again, from nothing but the facts: how we know that the view holds what the log says (I15).

Facts at or below a log's floor are its snapshot (the newest of each key), so the facts that are left are enough. What
is not made of facts stays out of it: the text so far of messages that are being written, and where a log's floor is.
"""

import sqlite3
from itertools import zip_longest
from typing import Any

from windlass import limits
from windlass.journal import view
from windlass.journal.migrations import migrate
from windlass.journal.records import FactRow

# What identifies a row comes first, so that both sides come in the same order and a difference can be named.
TABLES = {
    "sessions": "workspace, id, parent, updated_at, seq, body",
    "messages": "workspace, id, session, run, number, position, role, unfinished, body",
    "runs": "workspace, id, session, number, state, place, body, private",
    "permissions": "workspace, id, session, run, body, private",
    "questions": "workspace, id, session, run, body",
    "grants": "workspace, session, tool, action, resource, pattern",
    "files": "workspace, id, session, path, version, body, run, seq, digest, before",
    "workspaces": "id, path, epoch, head, skip",
}
_IDENTITY_COLUMNS = 2


def rebuild(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Make the tables in `target`, an empty database, from the facts in `source`."""
    migrate(target)
    target.execute("BEGIN")  # one for all of it: else every row would be a transaction of its own
    for id, path, epoch, created_at in source.execute("SELECT id, path, epoch, created_at FROM workspaces"):
        target.execute(
            "INSERT INTO workspaces (id, path, epoch, created_at) VALUES (?, ?, ?, ?)", (id, path, epoch, created_at)
        )
        rows = source.execute(
            "SELECT workspace, seq, time, by, session, run, kind, change, key, body, private FROM facts"
            " WHERE workspace = ? ORDER BY seq",
            (id,),
        )
        for row in rows:
            _apply(target, FactRow(*row))
    target.execute("COMMIT")


def _apply(target: sqlite3.Connection, row: FactRow) -> None:
    # A fact that lost its body with its session says nothing about any state any more; taken for a real one, it would
    # be filed without its private half, or delete what has no session.
    if not (row.change == "deleted" and row.key == ""):
        view.apply(target, row)
    target.execute("UPDATE workspaces SET head = ? WHERE id = ?", (row.seq, row.workspace))


def compare(source: sqlite3.Connection) -> list[str]:
    """The differences between the tables and what the facts say they should be, in words; [] when there are none."""
    target = sqlite3.connect(":memory:", isolation_level=None)
    try:
        rebuild(source, target)
        differences: list[str] = []
        for table, columns in TABLES.items():
            differences += _differences(table, columns, source, target)
            if len(differences) >= limits.REBUILD_DIFFERENCES:
                break
        return differences[: limits.REBUILD_DIFFERENCES]
    finally:
        target.close()


def _differences(table: str, columns: str, source: sqlite3.Connection, target: sqlite3.Connection) -> list[str]:
    count = columns.count(",") + 1
    query = f"SELECT {columns} FROM {table} ORDER BY {', '.join(str(n + 1) for n in range(count))}"
    found: list[str] = []
    for kept, made in zip_longest(source.execute(query), target.execute(query)):
        if kept != made:
            found.append(f"{table}: the table has {_named(kept, made)}, the facts say {_named(made, kept)}")
            if len(found) >= limits.REBUILD_DIFFERENCES:
                break
    return found


def _named(row: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> str:
    """The row's identity, and the columns in which it differs from the other."""
    if row is None:
        return "nothing"
    identity = "/".join(str(value) for value in row[:_IDENTITY_COLUMNS])
    if other is None or other[:_IDENTITY_COLUMNS] != row[:_IDENTITY_COLUMNS]:
        return identity
    return f"{identity} {[value for value, that in zip(row, other, strict=True) if value != that]!r}"
