"""What was: the facts of one run in order, and the workspaces that were ever open."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import msgspec

from windlass import limits

Result = TypeVar("Result")


class KnownWorkspace(msgspec.Struct, frozen=True):
    """`last` is when its newest fact happened, 0 when nothing ever has."""

    id: str
    path: str
    last: float


def run_facts(
    connection: sqlite3.Connection,
    workspace: str,
    session: str,
    run: str,
    decode: Callable[[float, str, str, bytes], Result | None],
) -> tuple[list[Result], bool]:
    """What `decode(time, kind, change, body)` makes of each fact of a run, in order; and whether that is all of them.

    Decoded one by one, here in the reader's thread: a run's messages together may have more bytes than fit memory.
    """
    # By rowid: facts are stored in their order, and sorting them by number would first copy all of their bodies.
    rows = connection.execute(
        "SELECT time, kind, change, body FROM facts WHERE workspace = ? AND session = ? AND run = ? ORDER BY rowid",
        (workspace, session, run),
    )
    found: list[Result] = []
    size = 0
    for time, kind, change, body in rows:
        size += len(body)
        if len(found) >= limits.TIMELINE_FACTS or size > limits.TIMELINE_BYTES:
            return found, False
        decoded = decode(time, kind, change, body)
        if decoded is not None:
            found.append(decoded)
    return found, True


def known_workspaces(connection: sqlite3.Connection) -> list[KnownWorkspace]:
    """Every workspace there is on disk, the one in which something happened last first, bounded in number."""
    rows = connection.execute(
        "SELECT w.id, w.path, coalesce(f.time, 0.0) FROM workspaces w"
        " LEFT JOIN facts f ON f.workspace = w.id AND f.seq = w.head"
        " ORDER BY coalesce(f.time, w.created_at) DESC, w.id LIMIT ?",
        (limits.KNOWN_WORKSPACES,),
    )
    return [KnownWorkspace(*row) for row in rows]
