"""The tables built from facts: `apply` files a fact in the same transaction that stores it; all reads go here.

Every function takes a connection and is synchronous: it is called in the writer's thread (`apply`) or in a reader's.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from windlass import limits
from windlass.journal import file_history
from windlass.journal.records import FactRow
from windlass.wire.messages import MessagePrivate
from windlass.wire.permissions import PermissionPrivate
from windlass.wire.runs import Run, RunPrivate
from windlass.wire.sessions import Session

Result = TypeVar("Result")


class _Head(msgspec.Struct):
    """The little that `apply` must know of a body to file it."""

    id: str = ""
    session_id: str = ""
    parent_session_id: str = ""
    updated_at: int = 0
    state: str = ""
    batch_id: str = ""


class _PartHead(msgspec.Struct):
    type: str


class _MessageHead(msgspec.Struct):
    role: str
    parts: list[_PartHead]


class _ConfigPrivate(msgspec.Struct):
    skip: bool


_head = msgspec.json.Decoder(_Head).decode
_message_head = msgspec.json.Decoder(_MessageHead).decode
_message_private = msgspec.json.Decoder(MessagePrivate).decode
_run_private = msgspec.json.Decoder(RunPrivate).decode
_permission_private = msgspec.json.Decoder(PermissionPrivate).decode
_config_private = msgspec.json.Decoder(_ConfigPrivate).decode


# -- writing ----------------------------------------------------------------------------------------------------------


def apply(connection: sqlite3.Connection, row: FactRow) -> None:
    """File one fact. Kinds that change no table (pure events) are only in the log."""
    match row.kind:
        case "message":
            _apply_message(connection, row)
        case "session":
            _apply_session(connection, row)
        case "run":
            _apply_run(connection, row)
        case "permission_request":
            connection.execute(
                "INSERT OR REPLACE INTO permissions VALUES (?, ?, ?, ?, ?, ?)",
                (row.workspace, row.key, row.session, row.run, row.body, row.private),
            )
        case "permission_notification":
            _apply_notification(connection, row)
        case "question_batch_request":
            connection.execute(
                "INSERT OR REPLACE INTO questions VALUES (?, ?, ?, ?, ?)",
                (row.workspace, row.key, row.session, row.run, row.body),
            )
        case "question_batch_notification":
            ended = _head(row.body).batch_id
            connection.execute("DELETE FROM questions WHERE workspace = ? AND id = ?", (row.workspace, ended))
        case "file":
            file_history.apply(connection, row)
        case "config_changed":
            if row.private is not None:
                skip = _config_private(row.private).skip
                connection.execute("UPDATE workspaces SET skip = ? WHERE id = ?", (skip, row.workspace))


def _apply_message(connection: sqlite3.Connection, row: FactRow) -> None:
    if row.change == "deleted":
        connection.execute("DELETE FROM messages WHERE workspace = ? AND id = ?", (row.workspace, row.key))
    else:
        assert row.private is not None
        place, head = _message_private(row.private), _message_head(row.body)
        connection.execute(
            "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                row.workspace,
                row.key,
                row.session,
                row.run,
                place.number,
                place.index,
                head.role,
                _is_open(head),
                row.body,
            ),
        )
    # A fact of the message replaces whatever text was kept of it so far.
    connection.execute("DELETE FROM checkpoints WHERE workspace = ? AND message = ?", (row.workspace, row.key))


def _is_open(head: _MessageHead) -> bool:
    """As `Message.is_open`, of the body of a fact, which is not decoded."""
    if head.role == "tool":
        return not head.parts
    return head.role == "assistant" and not any(part.type == "finish" for part in head.parts)


def _apply_session(connection: sqlite3.Connection, row: FactRow) -> None:
    if row.change == "deleted":
        _forget_session(connection, row.workspace, row.key)
        return
    head = _head(row.body)
    connection.execute(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?)",
        (row.workspace, row.key, head.parent_session_id, head.updated_at, row.seq, row.body),
    )


def _apply_run(connection: sqlite3.Connection, row: FactRow) -> None:
    if row.change == "deleted":
        return
    assert row.private is not None
    state, private = _head(row.body).state, _run_private(row.private)
    connection.execute(
        "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (row.workspace, row.key, row.session, private.number, state, private.order, row.body, row.private),
    )


def _apply_notification(connection: sqlite3.Connection, row: FactRow) -> None:
    if row.private is None:
        return
    private = _permission_private(row.private)
    if private.granted:
        exact, pattern = ("", private.pattern) if private.pattern else (private.resource, "")
        connection.execute(
            "INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?)",
            (row.workspace, row.session, private.tool, private.action, exact, pattern),
        )
    connection.execute("DELETE FROM permissions WHERE workspace = ? AND id = ?", (row.workspace, private.request_id))


_SESSION_TABLES = ("messages", "runs", "permissions", "questions", "grants", "files", "checkpoints")


def _forget_session(connection: sqlite3.Connection, workspace: str, session: str) -> None:
    """Remove all content of a session, also from the log: its facts keep their numbers and lose their bodies."""
    for table in _SESSION_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE workspace = ? AND session = ?", (workspace, session))
    connection.execute("DELETE FROM sessions WHERE workspace = ? AND id = ?", (workspace, session))
    connection.execute(
        "UPDATE facts SET change = 'deleted', private = NULL, key = '',"
        " body = CAST(json_object('id', json_extract(CAST(body AS TEXT), '$.id'), 'session_id', session) AS BLOB)"
        " WHERE workspace = ? AND session = ?",
        (workspace, session),
    )


# -- reading ----------------------------------------------------------------------------------------------------------


class WorkspaceRow(msgspec.Struct, frozen=True):
    id: str
    path: str
    epoch: str
    head: int
    floor: int
    skip: bool


class MessageRow(msgspec.Struct, frozen=True, gc=False):
    id: str
    unfinished: bool
    body: bytes


class OpenRun(msgspec.Struct, frozen=True):
    """A run that is not terminal, as a restart finds it."""

    run: Run
    private: RunPrivate


class Opening(msgspec.Struct, frozen=True):
    """Everything a workspace needs in memory while it is open."""

    workspace: WorkspaceRow
    sessions: list[Session]
    next_numbers: dict[str, int]
    next_order: int
    runs: list[OpenRun]
    permissions: list[bytes]
    questions: list[bytes]
    grants: list[tuple[str, str, str, str, str]]
    files: dict[tuple[str, str], file_history.Known]
    file_bytes: dict[str, int]


_session = msgspec.json.Decoder(Session).decode
_run = msgspec.json.Decoder(Run).decode


def at_head(
    connection: sqlite3.Connection, workspace: str, query: Callable[..., Result], *arguments: Any
) -> tuple[int, Result]:
    """A query's result, and the newest fact of the workspace that it could see."""
    row = connection.execute("SELECT head FROM workspaces WHERE id = ?", (workspace,)).fetchone()
    return (0 if row is None else row[0]), query(connection, *arguments)


def workspace_by_path(connection: sqlite3.Connection, path: str) -> WorkspaceRow | None:
    return _workspace(connection, "path", path)


def workspace_by_id(connection: sqlite3.Connection, id: str) -> WorkspaceRow | None:
    return _workspace(connection, "id", id)


def _workspace(connection: sqlite3.Connection, column: str, value: str) -> WorkspaceRow | None:
    row = connection.execute(
        f"SELECT id, path, epoch, head, floor, skip FROM workspaces WHERE {column} = ?", (value,)
    ).fetchone()
    return None if row is None else _workspace_row(row)


def _workspace_row(row: tuple[Any, ...]) -> WorkspaceRow:
    id, path, epoch, head, floor, skip = row
    return WorkspaceRow(id, path, epoch, head, floor, bool(skip))


def workspaces(connection: sqlite3.Connection) -> list[WorkspaceRow]:
    rows = connection.execute("SELECT id, path, epoch, head, floor, skip FROM workspaces ORDER BY id")
    return [_workspace_row(row) for row in rows]


def workspaces_with_open_runs(connection: sqlite3.Connection) -> list[WorkspaceRow]:
    """What a restart must open: nobody asks for these, but their runs were acknowledged (I1)."""
    rows = connection.execute(
        "SELECT id, path, epoch, head, floor, skip FROM workspaces WHERE id IN"
        " (SELECT DISTINCT workspace FROM runs WHERE state IN ('accepted', 'queued', 'running', 'waiting')) ORDER BY id"
    )
    return [_workspace_row(row) for row in rows]


def opening(connection: sqlite3.Connection, id: str) -> Opening:
    workspace = workspace_by_id(connection, id)
    assert workspace is not None
    sessions = connection.execute("SELECT body FROM sessions WHERE workspace = ?", (id,))
    numbers = connection.execute(
        "SELECT session, max(number) + 1 FROM runs WHERE workspace = ? GROUP BY session", (id,)
    )
    (last,) = connection.execute("SELECT coalesce(max(place), 0) FROM runs WHERE workspace = ?", (id,)).fetchone()
    runs = connection.execute(
        "SELECT body, private FROM runs WHERE workspace = ?"
        " AND state IN ('accepted', 'queued', 'running', 'waiting') ORDER BY place",
        (id,),
    )
    permissions = connection.execute("SELECT body FROM permissions WHERE workspace = ? ORDER BY rowid", (id,))
    questions = connection.execute("SELECT body FROM questions WHERE workspace = ? ORDER BY rowid", (id,))
    grants = connection.execute(
        "SELECT session, tool, action, resource, pattern FROM grants WHERE workspace = ? ORDER BY rowid", (id,)
    )
    return Opening(
        workspace,
        [_session(body) for (body,) in sessions],
        dict(numbers.fetchall()),
        last + 1,
        [OpenRun(_run(body), _run_private(private)) for body, private in runs],
        [body for (body,) in permissions],
        [body for (body,) in questions],
        grants.fetchall(),
        file_history.known(connection, id),
        file_history.sizes(connection, id),
    )


def sessions(connection: sqlite3.Connection, workspace: str, parent: str) -> list[bytes]:
    """Bodies, the one that changed last first."""
    rows = connection.execute(
        "SELECT body FROM sessions WHERE workspace = ? AND parent = ? ORDER BY updated_at DESC, seq DESC",
        (workspace, parent),
    )
    return [body for (body,) in rows]


def session(connection: sqlite3.Connection, workspace: str, id: str) -> bytes | None:
    row = connection.execute("SELECT body FROM sessions WHERE workspace = ? AND id = ?", (workspace, id)).fetchone()
    return None if row is None else bytes(row[0])


def messages(
    connection: sqlite3.Connection, workspace: str, session: str, after: str = "", limit: int = -1
) -> list[MessageRow] | None:
    """Oldest first, after the message `after`; None when there is no such message."""
    place = (0, -1)
    if after:
        row = connection.execute(
            "SELECT number, position FROM messages WHERE workspace = ? AND session = ? AND id = ?",
            (workspace, session, after),
        ).fetchone()
        if row is None:
            return None
        place = row
    rows = connection.execute(
        "SELECT id, unfinished, body FROM messages WHERE workspace = ? AND session = ?"
        " AND (number, position) > (?, ?) ORDER BY number, position LIMIT ?",
        (workspace, session, *place, limit),
    )
    return [MessageRow(id, bool(unfinished), body) for id, unfinished, body in rows]


def conversation(connection: sqlite3.Connection, workspace: str, session: str, first: str) -> list[bytes]:
    """Bodies, oldest first, from the message `first` on; all of them when there is no such message."""
    place = connection.execute(
        "SELECT number, position FROM messages WHERE workspace = ? AND session = ? AND id = ?",
        (workspace, session, first),
    ).fetchone()
    rows = connection.execute(
        "SELECT body FROM messages WHERE workspace = ? AND session = ? AND (number, position) >= (?, ?)"
        " ORDER BY number, position",
        (workspace, session, *(place or (0, 0))),
    )
    return [body for (body,) in rows]


def message(connection: sqlite3.Connection, workspace: str, id: str) -> MessageRow | None:
    row = connection.execute(
        "SELECT id, unfinished, body FROM messages WHERE workspace = ? AND id = ?", (workspace, id)
    ).fetchone()
    return None if row is None else MessageRow(row[0], bool(row[1]), row[2])


def user_messages(connection: sqlite3.Connection, workspace: str, session: str = "") -> list[bytes]:
    """What people said, newest first: of one session, or of all."""
    where, values = "workspace = ? AND role = 'user'", [workspace]
    if session:
        where, values = where + " AND session = ?", [workspace, session]
    rows = connection.execute(
        f"SELECT body FROM messages WHERE {where}"
        " ORDER BY json_extract(CAST(body AS TEXT), '$.created_at') DESC, number DESC, position DESC LIMIT ?",
        (*values, limits.MESSAGES_PER_PAGE),
    )
    return [body for (body,) in rows]


def run_messages(
    connection: sqlite3.Connection, workspace: str, session: str, number: int
) -> list[tuple[str, MessagePrivate, bytes]]:
    """The messages that stand in one run: whose they are, their places, and the text so far of one being written."""
    rows = connection.execute(
        "SELECT m.run, m.number, m.position, coalesce(c.body, m.body) FROM messages m LEFT JOIN checkpoints c"
        " ON c.workspace = m.workspace AND c.message = m.id WHERE m.workspace = ? AND m.session = ? AND m.number = ?"
        " ORDER BY m.position",
        (workspace, session, number),
    )
    return [(run, MessagePrivate(number, position), body) for run, number, position, body in rows]


def run(connection: sqlite3.Connection, workspace: str, id: str) -> tuple[bytes, RunPrivate] | None:
    row = connection.execute(
        "SELECT body, private FROM runs WHERE workspace = ? AND id = ?", (workspace, id)
    ).fetchone()
    return None if row is None else (row[0], _run_private(row[1]))


def runs(
    connection: sqlite3.Connection, workspace: str, session: str, state: str, after: str, limit: int
) -> list[bytes] | None:
    """Bodies in the order they were accepted, filtered; None when the run `after` is unknown."""
    where, values = ["workspace = ?"], [workspace]
    if session:
        where.append("session = ?")
        values.append(session)
    if state:
        where.append("state = ?")
        values.append(state)
    place: Any = 0
    if after:
        row = connection.execute("SELECT place FROM runs WHERE workspace = ? AND id = ?", (workspace, after)).fetchone()
        if row is None:
            return None
        place = row[0]
    rows = connection.execute(
        f"SELECT body FROM runs WHERE {' AND '.join(where)} AND place > ? ORDER BY place LIMIT ?",
        (*values, place, limit),
    )
    return [body for (body,) in rows]


def permissions(connection: sqlite3.Connection, workspace: str) -> list[bytes]:
    rows = connection.execute("SELECT body FROM permissions WHERE workspace = ? ORDER BY rowid", (workspace,))
    return [body for (body,) in rows]


def facts(connection: sqlite3.Connection, workspace: str, after: int, upto: int) -> list[FactRow]:
    """A page of the log: facts with after < seq <= upto, bounded in number and in bytes (at least one)."""
    rows = connection.execute(
        "SELECT workspace, seq, time, by, session, run, kind, change, key, body, NULL FROM facts"
        " WHERE workspace = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (workspace, after, upto, limits.PAGE_FACTS),
    )
    page: list[FactRow] = []
    size = 0
    for row in rows:
        page.append(FactRow(*row))
        size += len(page[-1].body)
        if size >= limits.PAGE_BYTES:
            break
    return page
