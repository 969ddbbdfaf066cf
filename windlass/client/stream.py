"""Following a workspace: every fact after a place, once, in order, across lost connections and server restarts.

The reader remembers the last fact it handed over. When the connection drops, stays silent or the server restarts, it
comes back with that id and goes on behind it. What it cannot do honestly (facts that are gone) it says: the server's
`reset` is handed over as it is, and a hole the server did not announce raises StreamGap.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from windlass import limits
from windlass.client.errors import ServerFailed, ServerUnreachable, StreamGap
from windlass.client.events import EventId, StreamEvent, decode
from windlass.client.sse import SseParser
from windlass.client.transport import backoff
from windlass.errors import NotFound, TooMany, Unavailable, WindlassError

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle

# After these the same request may well succeed a moment later; everything else is a decision of the server's.
PASSING = (ServerUnreachable, ServerFailed, Unavailable, TooMany)

Notice = Callable[[str], None]


async def follow(
    workspace: "WorkspaceHandle",
    *,
    after: EventId | int | None = None,
    deltas: bool = False,
    give_up_after: float | None = None,
    silence: float = limits.CLIENT_SILENCE_SECONDS,
    notice: Notice | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the workspace's events. See `WorkspaceHandle.events`, which is how callers get here."""
    place = Place(after)
    patience = _Patience(give_up_after, notice)
    while True:
        patience.connecting()
        try:
            async with aclosing(_connection(workspace, place.cursor, deltas, silence)) as events:
                async for event in events:
                    if event.kind == "hello":
                        patience.connected()
                    if place.take(event):
                        yield event
            problem: WindlassError = ServerUnreachable("The server ended the stream.")
        except NotFound as closed:
            # The workspace closed, or the server is a new one that has not opened it: same path, same log.
            problem = closed
            try:
                await workspace.reopen()
            except PASSING as error:
                problem = error
        except StreamGap as gap:
            place.forgive(gap)
            problem = gap
        except PASSING as error:
            problem = error
        await patience.pause(problem)


async def _connection(
    workspace: "WorkspaceHandle", cursor: EventId | int | None, deltas: bool, silence: float
) -> AsyncGenerator[StreamEvent, None]:
    """The events of one connection, until it ends."""
    headers = {"Last-Event-ID": str(cursor)} if isinstance(cursor, EventId) else {}
    query = {
        "client_id": workspace.transport.client_id,
        "after": cursor if not isinstance(cursor, EventId) else None,
        "deltas": 1 if deltas else None,
    }
    parser = SseParser()
    async with workspace.transport.stream(f"{workspace.path_prefix}/events", query, headers) as source:
        while True:
            # Timed only while waiting: a slow consumer of ours is not a silent server.
            async with asyncio.timeout(silence):
                chunk = await source.readany()
            if not chunk:
                return
            for event in parser.feed(chunk):
                yield decode(event)


class Place:
    """Where in the log a reader is. Pure: events in, "hand it over or not" out."""

    def __init__(self, after: EventId | int | None) -> None:
        self.cursor = after
        self._gap_behind: EventId | int | None = None

    def take(self, event: StreamEvent) -> bool:
        """True when the event is to be handed over, False for a repeat. Raises StreamGap for a hole."""
        if event.kind == "hello":
            if self.cursor is None:
                # "From now" is decided once: a drop before the first fact must not lose what happens meanwhile.
                self.cursor = _position(event)
            return True
        if event.kind == "reset":
            self.cursor = _position(event)
            return True
        if event.id is None:
            return True
        if isinstance(self.cursor, EventId) and event.id.epoch == self.cursor.epoch and event.id.seq <= self.cursor.seq:
            return False
        if isinstance(self.cursor, EventId) and event.id != (self.cursor.epoch, self.cursor.seq + 1):
            raise StreamGap(f"The stream went from {self.cursor} to {event.id}: facts are missing. Reload the session.")
        self.cursor = event.id
        return True

    def forgive(self, gap: StreamGap) -> None:
        """A hole may be the connection's fault: ask again once from the same place, then believe it."""
        if self._gap_behind == self.cursor:
            raise gap
        self._gap_behind = self.cursor


def _position(event: StreamEvent) -> EventId:
    try:
        return EventId(str(event.payload["epoch"]), int(event.payload["head"]))
    except (KeyError, ValueError, TypeError):
        raise StreamGap(f"The stream's `{event.kind}` does not say where the log is.") from None


class _Patience:
    """How long to wait before the next try, and when to stop trying."""

    def __init__(self, give_up_after: float | None, notice: Notice | None) -> None:
        self._give_up_after = give_up_after
        self._notice = notice
        self._attempt = 0
        self._started = 0.0
        self._failing_since: float | None = None
        self._said = False

    def connecting(self) -> None:
        self._started = _now()

    def connected(self) -> None:
        if self._said and self._notice is not None:
            self._notice("Connected again.")
        self._failing_since = None
        self._said = False

    async def pause(self, problem: WindlassError) -> None:
        """Wait a little longer than last time. Raises ServerUnreachable when it went on for too long."""
        now = _now()
        if now - self._started > limits.CLIENT_RETRY_MAX_SECONDS:
            # It held for a while, so this is a new failure. One that drops us at once is not asked ten times a second.
            self._attempt = 0
        if self._failing_since is None:
            self._failing_since = now
        elif self._give_up_after is not None and now - self._failing_since >= self._give_up_after:
            raise ServerUnreachable(f"The stream could not be had back: {problem.message}") from problem
        if self._notice is not None and not self._said:
            self._said = True
            self._notice(f"The connection was lost: {problem.message} Trying again.")
        wait = backoff(self._attempt)
        if isinstance(problem, TooMany):
            wait = min(max(wait, problem.retry_after), limits.CLIENT_RETRY_AFTER_SECONDS)
        self._attempt += 1
        await asyncio.sleep(wait)


def _now() -> float:
    return asyncio.get_running_loop().time()
