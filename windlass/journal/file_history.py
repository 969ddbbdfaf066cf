"""Versions of the files that sessions wrote: what they were before a run, after it, and after an undo.

The content is in the body; beside it are digests, so that a chain of changes can be followed without reading megabytes.
"""

import sqlite3

import msgspec

from windlass.journal.records import FactRow
from windlass.wire.messages import ToolResult
from windlass.wire.runs import RunPrivate
from windlass.wire.sessions import FilePrivate


class _VersionHead(msgspec.Struct):
    id: str
    path: str
    version: int


class _ToolMessage(msgspec.Struct):
    parts: list[msgspec.Raw]


class _Metadata(msgspec.Struct):
    files: dict[str, str] = {}


class Change(msgspec.Struct, frozen=True):
    """One version that a run brought, without its content: digests of what the file is, and of what it was."""

    session: str
    path: str
    digest: str
    before: str


_head = msgspec.json.Decoder(_VersionHead).decode
_private = msgspec.json.Decoder(FilePrivate).decode
_run_private = msgspec.json.Decoder(RunPrivate).decode
_tool_message = msgspec.json.Decoder(_ToolMessage).decode
_result = msgspec.json.Decoder(ToolResult).decode
_metadata = msgspec.json.Decoder(_Metadata).decode


def apply(connection: sqlite3.Connection, row: FactRow) -> None:
    """File one version. One that is told again takes the place of itself."""
    head = _head(row.body)
    private = FilePrivate() if row.private is None else _private(row.private)
    connection.execute(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            row.workspace,
            head.id,
            row.session,
            head.path,
            head.version,
            row.body,
            row.run,
            row.seq,
            private.digest,
            private.before,
        ),
    )


class Known(msgspec.Struct, frozen=True):
    """The newest version of a file in a session."""

    version: int
    digest: str


def known(connection: sqlite3.Connection, workspace: str) -> dict[tuple[str, str], Known]:
    """By session and path."""
    rows = connection.execute(  # with max() SQLite takes the other columns from the row that has it
        "SELECT session, path, max(version), digest FROM files WHERE workspace = ? GROUP BY session, path", (workspace,)
    )
    return {(session, path): Known(version, digest) for session, path, version, digest in rows}


def sizes(connection: sqlite3.Connection, workspace: str) -> dict[str, int]:
    """How many bytes of versions each session keeps."""
    rows = connection.execute(
        "SELECT session, sum(length(body)) FROM files WHERE workspace = ? GROUP BY session", (workspace,)
    )
    return dict(rows.fetchall())


def history(connection: sqlite3.Connection, workspace: str, session: str) -> list[bytes]:
    """Bodies of all versions of a session, in the order in which they came to be."""
    rows = connection.execute(
        "SELECT body FROM files WHERE workspace = ? AND session = ? ORDER BY seq", (workspace, session)
    )
    return [body for (body,) in rows]


def version_with(connection: sqlite3.Connection, workspace: str, session: str, path: str, digest: str) -> bytes | None:
    """A version of a file that has exactly this content, whichever it is."""
    row = connection.execute(
        "SELECT body FROM files WHERE workspace = ? AND session = ? AND path = ? AND digest = ? ORDER BY seq LIMIT 1",
        (workspace, session, path, digest),
    ).fetchone()
    return None if row is None else bytes(row[0])


def changes(connection: sqlite3.Connection, workspace: str, runs: list[str]) -> list[Change]:
    """What these runs brought, in the order in which they did."""
    found: list[tuple[int, Change]] = []
    for run in runs:
        rows = connection.execute(
            "SELECT seq, session, path, digest, before FROM files WHERE workspace = ? AND run = ?", (workspace, run)
        )
        found += [(seq, Change(*fields)) for seq, *fields in rows]
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def runs_below(connection: sqlite3.Connection, workspace: str, run: str, sessions: list[str]) -> list[str]:
    """The run, and every run of its agents and of theirs. `sessions`: those below its session."""
    started: dict[str, list[str]] = {}  # by the run that started them
    for session in sessions:
        rows = connection.execute(
            "SELECT id, private FROM runs WHERE workspace = ? AND session = ?", (workspace, session)
        )
        for id, private in rows:
            started.setdefault(_run_private(private).parent_run, []).append(id)
    found = [run]
    for id in found:  # it grows while it is walked: children, then theirs
        found += started.get(id, [])
    return found


def files_read(connection: sqlite3.Connection, workspace: str, session: str) -> list[str]:
    """Paths of the files whose content the session's model has been shown, as its tools wrote them down."""
    rows = connection.execute(
        "SELECT body FROM messages WHERE workspace = ? AND session = ? AND role = 'tool'", (workspace, session)
    )
    paths: set[str] = set()
    for (body,) in rows:
        for part in _tool_message(body).parts:
            paths |= _noted(part)
    return sorted(paths)


def _noted(part: msgspec.Raw) -> set[str]:
    try:
        result = _result(part).data
        return set() if result.is_error or not result.metadata else set(_metadata(result.metadata).files)
    except msgspec.MsgspecError:
        return set()  # another kind of part, or a tool of someone else's, whose metadata mean something else
