"""The sessions of an open workspace as decisions see them, and the facts that tell of their changes.

Their ids are in memory while a workspace is open, so that accepting a prompt never reads the disk between looking and
acting.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from windlass import limits
from windlass.errors import Invalid, NotFound, TooMany
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.sessions import Session


class Sessions:
    """`is_busy` and `watchers` tell what a session's fact says of its runs and of who looks at it."""

    def __init__(self, sessions: list[Session], is_busy: Callable[[str], bool], watchers: Callable[[str], int]) -> None:
        self.leaving: set[str] = set()  # on their way out: nothing new is accepted, what runs still ends
        self._sessions = {session.id: session for session in sessions}
        self._is_busy = is_busy
        self._watchers = watchers

    @property
    def ids(self) -> list[str]:
        return list(self._sessions)

    def has(self, session_id: str) -> bool:
        return session_id in self._sessions and session_id not in self.leaving

    def get(self, session_id: str) -> Session:
        """The session; raises NotFound for one that is unknown or on its way out."""
        if not self.has(session_id):
            raise NotFound("There is no such session in this workspace.")
        return self._sessions[session_id]

    def ending(self, session_id: str) -> Session | None:
        """The session as far as its last runs are concerned: also one that is on its way out."""
        return self._sessions.get(session_id)

    def lineage(self, session_id: str) -> list[Session]:
        """The session and those above it, the root first."""
        line: list[Session] = []
        session = self._sessions.get(session_id)
        while session is not None:
            line.insert(0, session)
            session = self._sessions.get(session.parent_session_id)
        return line

    def children(self, session_id: str) -> list[Session]:
        """The sessions of its sub-agents, the oldest first."""
        return [session for session in self._sessions.values() if session.parent_session_id == session_id]

    def family(self, session_id: str) -> list[Session]:
        """The session and all below it, the deepest first."""
        below = [session for child in self.children(session_id) for session in self.family(child.id)]
        return [*below, self._sessions[session_id]]

    def create(self, session: Session, by: By) -> Fact:
        if len(self._sessions) >= limits.SESSIONS_PER_WORKSPACE:
            raise TooMany("This workspace has too many sessions. Delete some that are no longer needed.")
        self._sessions[session.id] = session
        return self._fact(session, by, created=True)

    def change(self, session_id: str, by: By, **changes: Any) -> list[Fact]:
        """The fact of a change; nothing for a session that was deleted."""
        session = self._sessions.get(session_id)
        if session is None:
            return []
        self._sessions[session_id] = session = msgspec.structs.replace(session, **changes)
        return [self._fact(session, by)]

    def delete(self, session_id: str, by: By, now: int) -> Fact:
        """The session is gone; what its fact says of it is its id."""
        session = self._sessions.pop(session_id)
        gone = Session(id=session.id, created_at=session.created_at, updated_at=now)
        return Fact("session", "deleted", gone, by, session_id, key=session_id)

    def _fact(self, session: Session, by: By, created: bool = False) -> Fact:
        body = msgspec.structs.replace(
            session, is_busy=self._is_busy(session.id), attached_clients=self._watchers(session.id)
        )
        return Fact("session", "created" if created else "updated", body, by, session.id, key=session.id)


def suggested_title(text: str) -> str:
    """A title that a model or a prompt suggests, on one line and short enough; "" when nothing of it can be shown."""
    whole = text.strip().partition("\n")[0].encode("utf-8", "replace").decode()
    shown = "".join(character if character.isprintable() else " " for character in whole)
    return " ".join(shown.split())[: limits.TITLE_CHARACTERS].rstrip()


def checked_title(title: str) -> str:
    if len(title) > limits.TITLE_CHARACTERS:
        raise Invalid(f"title is longer than {limits.TITLE_CHARACTERS} characters.")
    return title
