"""Agents that are kept as files: their sessions, the indices of these, and the mail between them."""

from typing import Any, Literal

import msgspec

AgentStatus = Literal["pending", "running", "idle", "completed", "error", "cancelled"]
MailKind = Literal["task", "ask", "reply", "steer", "handoff"]
Moment = int | float | str  # as its writer wrote it (we write Unix seconds); nothing is decided by it


class AgentEntry(msgspec.Struct, frozen=True):
    """What an index says of a session: everything but its payload."""

    type: str
    status: AgentStatus
    title: str = ""
    responsibility: str = ""
    updated_at: Moment = 0


class AgentSession(msgspec.Struct, frozen=True):
    """A session's file. The payload is its owner's business: any JSON, kept byte for byte."""

    type: str
    status: AgentStatus
    title: str = ""
    responsibility: str = ""
    updated_at: Moment = 0
    payload: msgspec.Raw = msgspec.Raw(b"null")


class AgentIndex(msgspec.Struct, frozen=True):
    """Which sessions a project has: those at the top, and whose child each of the others is."""

    roots: list[str] = []
    parents: dict[str, str] = {}


class MailFrom(msgspec.Struct, frozen=True, omit_defaults=True):
    session_id: str
    role: str | None = None


class Mail(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message from a session to another. Its `id` is the sender's: the same id is the same message."""

    id: str
    sender: MailFrom = msgspec.field(name="from")
    kind: MailKind
    body: Any
    created_at: Moment
    correlation_id: str | None = None
