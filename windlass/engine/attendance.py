"""Who holds a workspace open, and which session each of them looks at: the claims with their timers.

A hold's timer carries the hold itself, so an old timer cannot hurt a newer claim of the same client (R30, R31).
"""

import asyncio
from collections.abc import Callable

from windlass.core.claims import Claims, Hold
from windlass.engine.context import Graces
from windlass.journal.log import Log
from windlass.wire.events import Presence


class Attendance:
    """The clients of one workspace. `changed` is called when someone came or went, `quiet` when a claim ended."""

    def __init__(self, log: Log, graces: Graces, changed: Callable[[], None], quiet: Callable[[], None]) -> None:
        self.claims = Claims()
        self.timers: dict[Hold, asyncio.TimerHandle] = {}
        self._log = log
        self._graces = graces
        self._changed = changed
        self._quiet = quiet
        self._closed = False

    def hold(self, client_id: str) -> None:
        """The client created the workspace: it stays open until its first stream, or until the grace is over."""
        self._watch(self.claims.create(client_id), self._graces.create)
        self._changed()

    def attach(self, client_id: str) -> int:
        """The client opened a stream; returns the stream's number."""
        stream = self.claims.attach(client_id)
        self._changed()
        return stream

    def detach(self, client_id: str, stream: int) -> None:
        """A stream ended; the last one of a client holds the workspace for a moment longer."""
        session_id = self.claims.looking_at(client_id)
        self._watch(self.claims.detach(client_id, stream), self._graces.detach)
        self._announce(session_id)

    def release(self, client_id: str) -> None:
        """Its claims go at once; a stream of it that is still open ends when it next looks."""
        session_id = self.claims.looking_at(client_id)
        if self.claims.release(client_id):
            self._announce(session_id)
            self._changed()
            self._log.wake()
            self._quiet()

    def look_at(self, client_id: str, session_id: str) -> None:
        """The client shows this session now ("" for none); everyone is told."""
        before = self.claims.look_at(client_id, session_id)
        if before != session_id:
            self._announce(before)
            self._announce(session_id)

    def _announce(self, session_id: str) -> None:
        if session_id and not self._closed:
            self._log.note("presence", Presence(session_id, self.claims.attached_clients(session_id)))

    def _watch(self, hold: Hold | None, seconds: float) -> None:
        # A stream that ends because the workspace closed leaves no timer behind (I19).
        if hold is not None and not self._closed:
            self.timers[hold] = asyncio.get_running_loop().call_later(seconds, self._expire, hold)

    def _expire(self, hold: Hold) -> None:
        del self.timers[hold]
        if self.claims.expire(hold):
            self._changed()
            self._quiet()

    def close(self) -> None:
        self._closed = True
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
