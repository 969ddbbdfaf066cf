"""One workspace's log while it is open: what is staged, what is published, and who reads it.

Facts and deltas are staged in one order. A fact becomes visible when the writer has committed it; a delta becomes
visible right after the facts staged before it. So nothing that rests on a fact is ever seen without it (I12).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from windlass import limits
from windlass.errors import Conflict, JournalPoisoned
from windlass.journal.encoding import fact_event, plain_event
from windlass.journal.live import STREAMED_FIELD, LiveMessage
from windlass.journal.records import Checkpoint, FactRow
from windlass.journal.tail import Tail, TailEntry
from windlass.journal.view import Opening
from windlass.wire.events import Fact, MessageDelta
from windlass.wire.messages import Message

if TYPE_CHECKING:
    from windlass.journal.journal import Journal

_encode = msgspec.json.Encoder().encode


class _StagedFact:
    __slots__ = ("effect", "event", "row")

    def __init__(self, row: FactRow, event: bytes, effect: Callable[[], None] | None) -> None:
        self.row = row
        self.event = event
        self.effect = effect


class _StagedDelta:
    """Text that one field gained since the last publish; it grows until it is published or a fact follows."""

    __slots__ = ("chunks", "id", "length", "live", "name", "part", "part_type")

    def __init__(self, live: LiveMessage, part: int, part_type: str = "", id: str = "", name: str = "") -> None:
        self.live = live
        self.part = part
        self.part_type = part_type
        self.id = id
        self.name = name
        self.chunks: list[str] = []
        self.length = 0


class Log:
    """Append facts, add deltas, wait until they are durable, read from any position."""

    def __init__(self, journal: "Journal", opening: Opening) -> None:
        row = opening.workspace
        self.workspace_id = row.id
        self.epoch = row.epoch
        self.floor = row.floor
        self.head = row.head  # the newest fact that was staged
        self.published = row.head  # the newest fact that anyone may see
        self.tail = Tail(row.head)
        self.live: dict[str, LiveMessage] = {}  # as published
        self.runs: dict[str, msgspec.Raw] = {}  # not terminal, as published
        self.permissions: dict[str, msgspec.Raw] = {}  # pending, as published
        self.questions: dict[str, msgspec.Raw] = {}  # pending, as published
        self.closed = False
        self._journal = journal
        self._staged_live: dict[str, LiveMessage] = {}
        self._pending: deque[_StagedFact | _StagedDelta] = deque()
        self._open_deltas: dict[tuple[str, int], _StagedDelta] = {}
        # A dict, not a set: readers are woken in the order they came, the same in every run of a simulation.
        self._wakers: dict[asyncio.Future[None], None] = {}
        self._durable_waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._flush_handle: asyncio.Handle | None = None
        self._flush_not_before = 0.0
        self._checkpoint_handle: asyncio.Handle | None = None
        self._pages: dict[int, asyncio.Task[tuple[bytes, int]]] = {}
        self.join_cache: dict[tuple[int, bool], tuple[bytes, int, int]] = {}
        for open_run in opening.runs:
            self.runs[open_run.run.id] = msgspec.Raw(_encode(open_run.run))
        for body in opening.permissions:
            self.permissions[msgspec.json.decode(body)["id"]] = msgspec.Raw(body)
        for body in opening.questions:
            self.questions[msgspec.json.decode(body)["id"]] = msgspec.Raw(body)

    # -- staging ------------------------------------------------------------------------------------------------------

    def append(self, facts: Sequence[Fact]) -> int:
        """Stage facts, in order, as one commit with whatever else is staged; returns the head to wait for."""
        self._journal.check()
        if not facts:
            return self.head
        if self.closed:
            # Its numbers may belong to another Log by now, and nobody would hear of the commit.
            raise Conflict("This workspace was closed. Open it again and repeat the request.")
        time = self._journal.clock.now()
        # All are encoded before any is staged: one that cannot be must not leave a gap, or half of a commit.
        rows = [self._row(fact, self.head + place, time) for place, fact in enumerate(facts, 1)]
        self._open_deltas.clear()  # text that comes later must not be seen before these facts
        for fact, row in zip(facts, rows, strict=True):
            self._pending.append(_StagedFact(row, fact_event(self.epoch, row), self._effect(fact, row)))
        self.head += len(rows)
        self._journal.stage(rows)
        return self.head

    def _row(self, fact: Fact, seq: int, time: float) -> FactRow:
        return FactRow(
            workspace=self.workspace_id,
            seq=seq,
            time=time,
            by=_encode(fact.by),
            session=fact.session,
            run=fact.run,
            kind=fact.kind,
            change=fact.change,
            key=fact.key,
            body=_encode(fact.body),
            private=None if fact.private is None else _encode(fact.private),
        )

    def _effect(self, fact: Fact, row: FactRow) -> Callable[[], None] | None:
        """What publishing this fact changes in the published state that is kept in memory."""
        match fact.kind:
            case "message":
                return self._message_effect(fact)
            case "run":
                return lambda: self._publish_run(fact.key, fact.body.is_terminal, row.body)
            case "permission_request":
                return lambda: self.permissions.__setitem__(fact.key, msgspec.Raw(row.body))
            case "permission_notification" if fact.body.outcome != "asked":
                return lambda: _drop(self.permissions, fact.body.id)
            case "question_batch_request":
                return lambda: self.questions.__setitem__(fact.key, msgspec.Raw(row.body))
            case "question_batch_notification":
                return lambda: _drop(self.questions, fact.body.batch_id)
            case "session" if fact.change == "deleted":
                return lambda: self._forget(row.seq - 1)
            case _:
                return None

    def _forget(self, seq: int) -> None:
        """A session was deleted: its words must not be read from memory."""
        self.tail.clear(seq)
        self._pages.clear()

    def _message_effect(self, fact: Fact) -> Callable[[], None]:
        message: Message = fact.body
        if message.is_open and fact.change != "deleted":
            live = LiveMessage(message)
            self._staged_live[message.id] = live
            return lambda: self.live.__setitem__(message.id, live)
        self._staged_live.pop(message.id, None)
        return lambda: _drop(self.live, message.id)

    def _publish_run(self, run_id: str, is_terminal: bool, body: bytes) -> None:
        if is_terminal:
            self.runs.pop(run_id, None)
        else:
            self.runs[run_id] = msgspec.Raw(body)

    def delta(self, message_id: str, part: int, text: str, part_type: str = "", id: str = "", name: str = "") -> None:
        """Stage text for a message that is being written; KeyError for one that is not, ValueError for a hole or more
        than a message may hold."""
        live = self._staged_live[message_id]
        if live.size + len(text) > limits.MESSAGE_BYTES:
            raise ValueError("the message is longer than this server keeps")
        if not text.isascii():
            text.encode()  # half a character is refused here: where it is published nobody could be told
        slot = self._open_deltas.get((message_id, part)) or self._open_delta(live, part, part_type, id, name)
        live.add(part, text)
        slot.chunks.append(text)
        slot.length += len(text)
        if self._flush_handle is None and not isinstance(self._pending[0], _StagedFact):
            self._schedule_flush()

    def _open_delta(self, live: LiveMessage, part: int, part_type: str, id: str, name: str) -> _StagedDelta:
        is_new = live.ensure_part(part, part_type, id, name)
        slot = _StagedDelta(live, part, live.part_type(part), id, name) if is_new else _StagedDelta(live, part)
        self._open_deltas[(live.message.id, part)] = slot
        self._pending.append(slot)
        return slot

    def sign(self, message_id: str, part: int, signature: str) -> None:
        """A provider's signature of a reasoning part: no text, so it comes with the fact that ends the message."""
        self._staged_live[message_id].sign(part, signature)

    def staged_message(self, message_id: str) -> Message | None:
        """A message that is being written, with everything that was said so far."""
        live = self._staged_live.get(message_id)
        return None if live is None else live.staged()

    # -- publishing ---------------------------------------------------------------------------------------------------

    def committed(self, seq: int) -> None:
        """The writer has made every fact up to `seq` durable: publish them, in order, and the deltas among them."""
        self._publish(seq)
        while self._durable_waiters and self._durable_waiters[0][0] <= self.published:
            _, waiter = self._durable_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def _schedule_flush(self) -> None:
        if self._flush_handle is not None or self.closed:
            return
        loop = asyncio.get_running_loop()
        # Alone, a token goes out at once; in a flood, what came in some milliseconds goes out as one.
        is_due = loop.time() >= self._flush_not_before
        self._flush_handle = (
            loop.call_soon(self._flush) if is_due else loop.call_at(self._flush_not_before, self._flush)
        )

    def _flush(self) -> None:
        self._flush_handle = None
        self._publish(self.published)

    def _publish(self, upto: int) -> None:
        events = 0
        while self._pending:
            entry = self._pending[0]
            if isinstance(entry, _StagedFact):
                if entry.row.seq > upto:
                    break
                if entry.effect is not None:
                    entry.effect()
                self.published = entry.row.seq
                self.tail.append(TailEntry(entry.row.seq, "fact", entry.event))
            else:
                self._publish_delta(entry)
            self._pending.popleft()
            events += 1
        if events:
            pause = min(events * limits.DELTA_FLUSH_SECONDS_PER_EVENT, limits.DELTA_FLUSH_SECONDS)
            pause += len(self._wakers) * limits.DELTA_FLUSH_SECONDS_PER_READER
            self._flush_not_before = asyncio.get_running_loop().time() + pause
            self.wake()

    def _publish_delta(self, slot: _StagedDelta) -> None:
        live = slot.live
        key = (live.message.id, slot.part)
        if self._open_deltas.get(key) is slot:
            del self._open_deltas[key]
        delta = MessageDelta(
            message_id=live.message.id,
            session_id=live.message.session_id,
            part=slot.part,
            field=STREAMED_FIELD[live.part_type(slot.part)],
            at=live.publish(slot.part, slot.length),
            text="".join(slot.chunks),
            type=slot.part_type,
            id=slot.id,
            name=slot.name,
        )
        event = plain_event("message_delta", "updated", delta)
        self.tail.append(TailEntry(self.published, "delta", event, live.message.id))
        self._schedule_checkpoint()

    def note(self, kind: str, payload: Any) -> None:
        """Tell everyone who listens now; not a fact, nobody can come back to it."""
        self.tail.append(TailEntry(self.published, "note", plain_event(kind, "updated", payload)))
        self.wake()

    def wake(self) -> None:
        self.join_cache.clear()
        wakers, self._wakers = self._wakers, {}
        for waker in wakers:
            if not waker.done():
                waker.set_result(None)

    # -- checkpoints --------------------------------------------------------------------------------------------------

    def _schedule_checkpoint(self) -> None:
        if self._checkpoint_handle is None and not self.closed:
            loop = asyncio.get_running_loop()
            self._checkpoint_handle = loop.call_later(limits.CHECKPOINT_SECONDS, self._checkpoint)

    def _checkpoint(self) -> None:
        """Keep the text so far, so that a crash loses at most a second of it."""
        self._checkpoint_handle = None
        if self._journal.poisoned is not None:
            return
        if self._journal.is_behind:
            self._schedule_checkpoint()  # a disk that cannot keep up is not helped by more to write
            return
        self._checkpoint_each([live for live in self.live.values() if live.version != live.checkpointed])

    def _checkpoint_each(self, due: list[LiveMessage]) -> None:
        """In slices: hundreds of long messages encoded in one go would hold everyone up."""
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.CHECKPOINT_SLICE_SECONDS
        self._checkpoint_handle = None
        while due:
            live = due.pop()
            # One that ended since is complete in its own fact; a late checkpoint of it would never be removed.
            if self._staged_live.get(live.message.id) is live and self._journal.poisoned is None:
                live.checkpointed = live.version
                body = _encode(live.published())
                self._journal.stage([Checkpoint(self.workspace_id, live.message.id, live.message.session_id, body)])
            if due and loop.time() >= until:
                self._checkpoint_handle = loop.call_soon(self._checkpoint_each, due)
                return
        if any(live.version != live.checkpointed for live in self.live.values()):
            self._schedule_checkpoint()  # it grew between two slices, and may not grow again

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def durable(self, seq: int) -> None:
        """Return when every fact up to `seq` is on disk and published; raise JournalPoisoned if it never will be."""
        # First: once a commit has failed, memory is ahead of the disk for good, and nothing it says may be told.
        self._journal.check()
        if self.published >= seq:
            return
        waiter = asyncio.get_running_loop().create_future()
        # Heads mostly come in order; a late waiter for an older head goes to its place.
        index = len(self._durable_waiters)
        while index and self._durable_waiters[index - 1][0] > seq:
            index -= 1
        self._durable_waiters.insert(index, (seq, waiter))
        await waiter

    async def changed(self, waker: "asyncio.Future[None]") -> None:
        """Return at the next publish, at close, or when someone resolves `waker`."""
        if self.closed:
            return
        self._wakers[waker] = None
        try:
            await waker
        finally:
            self._wakers.pop(waker, None)

    def close(self) -> None:
        """Readers end; nothing is staged any more."""
        self.closed = True
        for handle in (self._flush_handle, self._checkpoint_handle):
            if handle is not None:
                handle.cancel()
        self.wake()

    def fail(self, error: JournalPoisoned) -> None:
        """The disk refused: whoever waits hears it, and readers end."""
        for _, waiter in self._durable_waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._durable_waiters.clear()
        self.close()

    async def page(self, after: int) -> tuple[bytes, int]:
        """Facts from disk, ready for the wire, from the one after `after` on without a gap, and the number of the last.

        Readers at the same place share one: when a server is back, all its clients ask for the same at once.
        """
        page = self._pages.get(after)
        if page is None:
            page = self._pages[after] = asyncio.create_task(self._read_page(after), name="page of the log")
            page.add_done_callback(_looked_at)
            if len(self._pages) > limits.SHARED_PAGES:
                del self._pages[next(iter(self._pages))]
        # A reader that leaves must not take the page from the others.
        return await asyncio.shield(page)

    async def _read_page(self, after: int) -> tuple[bytes, int]:
        place, events = after, []
        try:
            for row in await self._journal.facts(self.workspace_id, after, self.published):
                if row.seq != after + 1:
                    break
                events.append(fact_event(self.epoch, row))
                after = row.seq
        finally:
            if not events:
                self._pages.clear()  # an error or a gap is of this moment, and must not be told to those who come later
        page = b"".join(events)
        if len(page) > 2 * limits.PAGE_BYTES:
            self._pages.pop(place, None)  # one fact of megabytes: not kept, or sixteen of them would stay
        return page, after


def _drop(table: dict[str, Any], key: str) -> None:
    table.pop(key, None)


def _looked_at(task: "asyncio.Task[Any]") -> None:
    """An error that nobody is left to hear of is no news: whoever asked has hung up."""
    if not task.cancelled():
        task.exception()


def resolve(waker: "asyncio.Future[None]") -> None:
    if not waker.done():
        waker.set_result(None)
