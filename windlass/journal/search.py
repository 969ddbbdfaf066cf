"""Looking for words in conversations: the newest messages first, in slices, so that other readers have their turn."""

import re
import sqlite3

import msgspec

from windlass import limits

_NEWEST = 2**63 - 1  # above every rowid


class Slice(msgspec.Struct, frozen=True):
    """What one look brought: the hits, and where the next one goes on; 0 when everything was looked at."""

    hits: list["Hit"]
    before: int
    rows: int
    size: int


class Hit(msgspec.Struct, frozen=True):
    """`message` is "" where the words are in the title of the session."""

    session: str
    title: str
    message: str
    role: str
    excerpt: str
    at: int


class Words(msgspec.Struct, frozen=True):
    """What is looked for. `bare` is found in every body that holds it, however its letters are written."""

    pattern: re.Pattern[str]
    bare: str


def words(text: str) -> Words:
    """The text as it is, no character of it special, upper and lower case alike."""
    escaped = msgspec.json.encode(text).decode()[1:-1]  # as it stands in a stored body
    return Words(re.compile(re.escape(text), re.IGNORECASE), escaped.lower())


class _Data(msgspec.Struct):
    """Of a message's parts, what people see of them."""

    text: str = ""
    input: str = ""
    content: str = ""
    command: str = ""
    output: str = ""


class _Part(msgspec.Struct):
    type: str
    data: _Data


class _Message(msgspec.Struct):
    parts: list[_Part]
    created_at: int


class _Session(msgspec.Struct):
    title: str
    updated_at: int


_message = msgspec.json.Decoder(_Message).decode
_session = msgspec.json.Decoder(_Session).decode


def titles(connection: sqlite3.Connection, workspace: str, wanted: Words, limit: int) -> list[Hit]:
    """Sessions with the words in their title, the one that changed last first."""
    rows = connection.execute(
        "SELECT id, body FROM sessions WHERE workspace = ? ORDER BY updated_at DESC, seq DESC LIMIT ?",
        (workspace, limits.SESSIONS_PER_WORKSPACE),
    )
    hits: list[Hit] = []
    for id, body in rows:
        if len(hits) >= limit:
            break
        session = _session(body)
        if excerpt := _excerpt(session.title, wanted):
            hits.append(Hit(id, session.title, "", "", excerpt, session.updated_at))
    return hits


def messages(connection: sqlite3.Connection, workspace: str, wanted: Words, limit: int, before: int = _NEWEST) -> Slice:
    """Messages with the words in them, the newest first, below the place `before`; a bounded number of rows and bytes
    is looked at, and at least one row."""
    # The rowid of a message is the place of its newest fact: what changed last comes first, without sorting anything.
    # Not `WHERE workspace = ?`: SQLite would take an index for it, and copy and sort every body there is for one look.
    # So those of other workspaces pass by here too, without their bodies.
    rows = connection.execute(
        "SELECT rowid, id, session, role, CASE WHEN workspace = ? THEN body END FROM messages"
        " WHERE rowid < ? ORDER BY rowid DESC",
        (workspace, before),
    )
    hits: list[Hit] = []
    count = size = 0
    for place, id, session, role, body in rows:
        count, size = count + 1, size + len(body or b"")
        if body is not None and (found := _found(body, wanted)):
            hits.append(Hit(session, _title(connection, workspace, session), id, role, *found))
        if len(hits) >= limit or count >= limits.CONVERSATION_SLICE_ROWS or size >= limits.CONVERSATION_SLICE_BYTES:
            return Slice(hits, place, count, size)
    return Slice(hits, 0, count, size)


def _found(body: bytes, wanted: Words) -> tuple[str, int] | None:
    if wanted.bare not in body.decode().lower():
        return None  # most bodies: not worth decoding
    message = _message(body)
    for part in message.parts:
        if part.type != "reasoning":
            for text in (part.data.text, part.data.command, part.data.input, part.data.content, part.data.output):
                if excerpt := _excerpt(text, wanted):
                    return excerpt, message.created_at
    return None


def _title(connection: sqlite3.Connection, workspace: str, session: str) -> str:
    row = connection.execute(
        "SELECT body FROM sessions WHERE workspace = ? AND id = ?", (workspace, session)
    ).fetchone()
    return "" if row is None else _session(row[0]).title


def _excerpt(text: str, wanted: Words) -> str:
    """The text around the first occurrence, on one line; "" when there is none."""
    match = wanted.pattern.search(text)
    if match is None:
        return ""
    start = max(0, match.start() - limits.SEARCH_EXCERPT_CHARACTERS)
    end = match.end() + limits.SEARCH_EXCERPT_CHARACTERS
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"
