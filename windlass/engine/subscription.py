"""A client's place on the event stream: the claim, the greeting and the reader, taken in one synchronous step (R48)."""

import msgspec

from windlass.engine.workspace import Workspace
from windlass.journal.encoding import plain_event
from windlass.journal.reader import Reader


class Cursor(msgspec.Struct, frozen=True):
    """Where a client wants to go on: after fact `seq` of the log `epoch` ("" for whichever log this is)."""

    epoch: str
    seq: int


class Subscription:
    """Attached from construction until `close`. What it hands out are bytes, ready for the wire."""

    def __init__(self, workspace: Workspace, client_id: str, cursor: Cursor | None, deltas: bool) -> None:
        self._workspace = workspace
        self._client_id = client_id
        self._number = workspace.attendance.attach(client_id)
        after, problem = self._position(cursor)
        self._reader = Reader(workspace.log, after, deltas)
        self.greeting = self._hello() + (self._reader.reset(problem) if problem else b"")

    @property
    def is_attached(self) -> bool:
        """Whether the claim still stands: not after its client said goodbye."""
        return self._workspace.claims.is_attached(self._client_id, self._number)

    @property
    def is_over(self) -> bool:
        return self._workspace.log.closed

    async def next(self, seconds: float) -> bytes:
        """What is new; b"" after `seconds`, or when woken, or at the end."""
        return await self._reader.next(seconds)

    def wake(self) -> None:
        self._reader.wake()

    def close(self) -> None:
        self._reader.close()
        self._workspace.attendance.detach(self._client_id, self._number)

    def _hello(self) -> bytes:
        log = self._workspace.log
        hello = {
            "epoch": log.epoch,
            "head": log.published,
            "floor": log.floor,
            "runs": list(log.runs.values()),
            "permissions": list(log.permissions.values()),
            "questions": list(log.questions.values()),
        }
        return plain_event("hello", "created", hello)

    def _position(self, cursor: Cursor | None) -> tuple[int, str]:
        """The fact to go on after, or why that is impossible (B41)."""
        log = self._workspace.log
        if cursor is None:
            return log.published, ""
        if cursor.epoch and cursor.epoch != log.epoch:
            return log.published, "the cursor is from another log"
        if not cursor.epoch and cursor.seq == 0:
            return log.floor, ""
        if cursor.seq < log.floor:
            return log.published, "the log was trimmed beyond the cursor"
        if cursor.seq > log.published:
            return log.published, "the cursor is beyond the end of the log"
        return cursor.seq, ""
