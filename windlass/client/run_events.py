"""The events of one run, out of the stream of its workspace: from its first fact to its `run_complete`."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from windlass import limits
from windlass.client.events import EventId, StreamEvent
from windlass.wire.runs import Run

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle

_FLOOR = 0  # as a place to begin after: the oldest fact there is


async def of_run(
    workspace: "WorkspaceHandle", run_id: str, session_id: str, after: EventId | None, deltas: bool
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the run's own events until it is over. `after` is the place before its first fact; None when that is not
    known. See `RunHandle.events`, which is how callers get here."""
    if after is not None:
        own = OwnEvents(run_id, session_id)
        async with aclosing(_until_over(workspace, own, after, deltas)) as events:
            async for event in events:
                if event.kind == "reset" and not own.seen_any:
                    break  # its beginning was trimmed
                yield event
            else:
                return
    run = await workspace.run(run_id)
    own = OwnEvents(run_id, run.session_id, run)
    async with aclosing(_until_over(workspace, own, _FLOOR, deltas)) as events:
        async for event in events:
            yield event


async def _until_over(
    workspace: "WorkspaceHandle", own: "OwnEvents", after: EventId | int, deltas: bool
) -> AsyncGenerator[StreamEvent, None]:
    async with aclosing(workspace.events(after=after, deltas=deltas)) as events:
        async for event in events:
            for taken in own.take(event):
                yield taken
            if own.over:
                return


class OwnEvents:
    """Which events of a workspace belong to one run, and when there will be no more of them. Pure: events in and out.

    A message does not say whose it is. It is the run's if the run lists it, or if it comes while the run is active: at
    most one run of a session is (I2). A run that was cancelled before it began is never active; its messages come just
    before the fact that lists them, and are held back until then.
    """

    def __init__(self, run_id: str, session_id: str, known: Run | None = None) -> None:
        self.over = False
        self._run_id = run_id
        self._session_id = session_id
        self._message_ids: set[str] = set() if known is None else set(known.message_ids)
        self._asked: set[str] = set()  # permissions and questions of the run
        self._active = False
        self._held: deque[StreamEvent] = deque(maxlen=limits.CLIENT_HELD_EVENTS)
        self._seq: int | None = None  # of the newest fact that came
        self._over_by: int | None = None  # the run was over at this fact, so everything of it is at or before it

    @property
    def seen_any(self) -> bool:
        """Whether any fact came yet."""
        return self._seq is not None

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """What to hand over now: nothing, the event, or the event behind those that were held back for it."""
        if event.kind == "hello":
            self._greet(event)
            return []
        if event.kind == "reset":
            head = _number(event, "head")
            self._seq = head if self.seen_any else None
            self._passed(head)
            return [event]
        if event.id is not None:
            self._seq = event.id.seq
            self._passed(self._seq)
        if event.kind == "run":
            return self._run(event)
        if self._is_own(event):
            self.over = self.over or event.kind == "run_complete"
            return [event]
        if event.kind == "message" and event.session_id == self._session_id and event.id is not None:
            self._held.append(event)
        return []

    def _greet(self, hello: StreamEvent) -> None:
        runs = [run for run in hello.payload.get("runs", ()) if isinstance(run, dict)]
        self._over_by = None if any(run.get("id") == self._run_id for run in runs) else _number(hello, "head")
        # With nothing to replay, no fact comes that would say that the end was passed.
        self._passed(_number(hello, "floor") if self._seq is None else self._seq)

    def _passed(self, seq: int) -> None:
        if self._over_by is not None and seq >= self._over_by:
            self.over = True

    def _run(self, event: StreamEvent) -> list[StreamEvent]:
        if event.payload.get("id") != self._run_id:
            if event.session_id == self._session_id:
                self._held.clear()  # another run has come this far: what was held is not ours
            return []
        self._message_ids.update(event.payload.get("message_ids", ()))
        self._active = event.payload.get("state") in ("running", "waiting")
        held = [message for message in self._held if message.payload.get("id") in self._message_ids]
        self._held.clear()
        return [*held, event]

    def _is_own(self, event: StreamEvent) -> bool:
        payload = event.payload
        match event.kind:
            case "run_complete" | "agent_event" | "file":
                return payload.get("run_id") == self._run_id
            case "permission_request" | "question_batch_request":
                return self._asks(str(payload.get("id")), payload.get("run_id") == self._run_id)
            case "permission_notification":
                return payload.get("id") in self._asked or self._in_session(event)
            case "question_batch_notification":
                return payload.get("batch_id") in self._asked
            case "message":
                return payload.get("id") in self._message_ids or self._in_session(event)
            case "message_delta":
                return payload.get("message_id") in self._message_ids or self._in_session(event)
            case _:
                return False

    def _asks(self, request_id: str, own: bool) -> bool:
        if own:
            self._asked.add(request_id)
        return own

    def _in_session(self, event: StreamEvent) -> bool:
        return self._active and event.session_id == self._session_id


def _number(event: StreamEvent, field: str) -> int:
    value = event.payload.get(field)
    return value if isinstance(value, int) else 0
