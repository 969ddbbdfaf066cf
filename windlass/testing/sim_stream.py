"""A simulated client's stream: read from a real subscription, kept byte for byte, dropped and taken up again."""

import asyncio
import random
import re
from collections.abc import Callable

from windlass.engine.subscription import Cursor, Subscription
from windlass.engine.workspace import Workspace
from windlass.testing.history import Chunk, Connection, History

_HEARTBEAT_SECONDS = 0.5
_SLOW_SECONDS = (0.05, 0.1, 0.3)
_FACT = re.compile(rb"^id: (\w+)\.(\d+)$", re.MULTILINE)
_RESET = re.compile(rb'^data: \{"type":"reset".*"epoch":"(\w+)","head":(\d+)', re.MULTILINE)
_HELLO = re.compile(rb'^data: \{"type":"hello".*"epoch":"(\w+)","head":(\d+)', re.MULTILINE)
_QUESTION = re.compile(rb'"type":"permission_request","payload":\{"type":"created","payload":\{"id":"(\w+)"')


_BATCH = re.compile(rb'"type":"question_batch_request","payload":\{"type":"created","payload":\{"id":"(\w+)"')


class SimStream:
    """One connection. `cursor` is what its client will come back with."""

    def __init__(
        self,
        history: History,
        rng: random.Random,
        workspace: Workspace,
        client_id: str,
        cursor: Cursor | None,
        deltas: bool,
        on_question: Callable[[str], None],
        on_batch: Callable[[str], None],
        may_close: Callable[[], bool],
    ) -> None:
        self.workspace = workspace
        self.client_id = client_id
        self.cursor = cursor
        self._history = history
        self._rng = rng
        self._slow = rng.random() < 0.25
        self._on_question = on_question
        self._on_batch = on_batch
        self._may_close = may_close
        after, epoch = (None, "") if cursor is None else (cursor.seq, cursor.epoch)
        self._connection = Connection(client_id, workspace.id, after, epoch, deltas)
        self._subscription = Subscription(workspace, client_id, cursor, deltas)
        self._connection.greeting = self._subscription.greeting
        history.opened(self._connection)
        self._remember(self._connection.greeting)

    async def read(self) -> None:
        """Until the workspace closes, the client is released, or this task is cancelled: then the link is cut."""
        try:
            while self._subscription.is_attached:
                data = await self._take()
                if not data and self._subscription.is_over:
                    if self._subscription.is_attached and not self._may_close():
                        self._history.violate("I17", f"{self.workspace.id} was closed under {self.client_id}'s stream")
                    break
                if self._slow:
                    await asyncio.sleep(self._rng.choice(_SLOW_SECONDS))
        finally:
            self._close()

    def _close(self) -> None:
        """The link is gone. That alone never closes a workspace: its client has a moment to come back (R39)."""
        was_claimed = self._subscription.is_attached and not self.workspace.closed
        self._subscription.close()
        if was_claimed and self.workspace.closed and not self._may_close():
            self._history.violate("I17", f"{self.workspace.id} was closed when {self.client_id}'s stream dropped")

    async def _take(self) -> bytes:
        reader = self._subscription._reader
        was_behind = reader._position is None
        data = await self._subscription.next(_HEARTBEAT_SECONDS)
        is_behind = reader._position is None
        if data:
            chunk = Chunk(self._history.at, data, was_behind and not is_behind, is_behind)
            self._connection.chunks.append(chunk)
            self._remember(data)
            if is_behind and not was_behind:
                self._history.count("a reader fell behind the tail")
        return data

    def _remember(self, data: bytes) -> None:
        """Move the cursor past everything that came, as a client does."""
        # The newest fact's line: what a body says has no line of its own, as its newlines are escaped.
        newest = data.rfind(b"\nid: ") + 1
        found = (
            _FACT.match(data, newest) or _RESET.search(data) or (_HELLO.search(data) if self.cursor is None else None)
        )
        if found is not None:
            self.cursor = Cursor(found[1].decode(), int(found[2]))
        if b"_request" in data:  # rare, and much faster than to look for the whole of it in all that comes
            for question in _QUESTION.findall(data):
                self._on_question(question.decode())
            for batch in _BATCH.findall(data):
                self._on_batch(batch.decode())

    @property
    def is_caught_up(self) -> bool:
        """Whether it was sent everything that is on disk."""
        ledger = self._history.ledgers[self.workspace.id]
        return self.cursor is not None and self.cursor.seq == len(ledger.facts)

    def complete(self) -> None:
        self._connection.complete = True
