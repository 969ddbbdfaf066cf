"""A reader of one workspace's log: a position, nothing more.

At the head it takes what is new from the shared tail; behind it, facts from the tail or in pages from disk, until it
has caught up; then unfinished messages are sent whole, and deltas go on from there. What it hands out is a gap-free,
duplicate-free, in-order stretch of the log (I13).
"""

import asyncio
import math

from windlass import limits
from windlass.journal.encoding import plain_event
from windlass.journal.log import Log, resolve
from windlass.wire.events import Reset


class Reader:
    """`after` is the last fact the client has. With `deltas`, text comes in pieces; without, as whole messages."""

    def __init__(self, log: Log, after: int, deltas: bool) -> None:
        self._log = log
        self._deltas = deltas
        self.seq = after
        self._position: int | None = None  # in the tail; None while catching up
        self._unsent: set[str] = set()  # unfinished messages it has to be sent whole before it can use their deltas
        # Of unfinished messages, as last sent whole; who was sent last comes last.
        self._versions: dict[str, tuple[int, int]] = {}
        self._whole_due = 0.0
        self._loop = asyncio.get_running_loop()
        self._waker: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def next(self, heartbeat: float) -> bytes:
        """What is new, at most one write's worth; b"" when there was nothing for `heartbeat` seconds, or when woken."""
        data = await self._next()
        if data or self._log.closed:
            # Nothing was waited for: a client that catches up would hold everyone else up.
            await asyncio.sleep(0)
            return data
        # A whole message that was held back is due before anything new may come.
        self._wake_at(min(self._loop.time() + heartbeat, self._whole_due if self._stale() else math.inf))
        self._waker = self._loop.create_future()
        await self._log.changed(self._waker)
        return await self._next()

    def wake(self) -> None:
        """Make a waiting `next` return: its client is gone."""
        if self._waker is not None:
            resolve(self._waker)

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _wake_at(self, when: float) -> None:
        """One timer that may ring too early, rather than a new one for every event: most are never needed."""
        if self._alarm is not None:
            if self._alarm.when() <= when:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    async def _next(self) -> bytes:
        if self._position is not None and self._position < self._log.tail.first:
            self._position = None  # too slow for the tail: on from the log
        if self._position is not None:
            return self._from_tail()
        if self.seq >= self._log.published:
            return self._join()
        if self._log.tail.covers(self.seq):
            return self._facts_from_tail()
        if self._log.closed:
            return b""  # the client comes back with its cursor and reads the rest then
        return await self._facts_from_disk()

    def _join(self) -> bytes:
        """Caught up: unfinished messages whole, once; from here on the tail."""
        self._position = self._log.tail.end
        self._versions = {}
        self._unsent = set(self._log.live)
        return self._from_tail()

    def _from_tail(self) -> bytes:
        assert self._position is not None
        if self._unsent:
            return self._join_further()
        key = (self._position, self._deltas)
        # Readers at the same place share the joined bytes.
        taken = self._log.join_cache.get(key)
        if taken is None:
            taken = self._take(self._position)
            if taken[1] == self._log.tail.end and len(self._log.join_cache) < limits.JOINED_CHUNKS:
                self._log.join_cache[key] = taken
        data, self._position, seq = taken
        self.seq = max(self.seq, seq)
        return data if self._deltas else data + self._changed_messages()

    def _join_further(self) -> bytes:
        """What is new, and of the messages that are still to be sent whole as many as fit one write: all of them at
        once, for each of many readers that do not read, would be more memory than the whole tail."""
        assert self._position is not None
        data, self._position, seq = self._take(self._position)
        self.seq = max(self.seq, seq)
        if self._position == self._log.tail.end:
            # Only at the head: a message as it is now goes on with the next delta that comes, not with an older one.
            self._unsent &= self._log.live.keys()
            data += self._whole_messages([id for id in self._log.live if id in self._unsent])
        return data

    def _take(self, position: int) -> tuple[bytes, int, int]:
        chunks: list[bytes] = []
        size, seq = 0, 0
        for entry in self._log.tail.since(position):
            if chunks and (
                size + len(entry.data) > limits.STREAM_WRITE_BYTES or len(chunks) >= limits.STREAM_YIELD_EVENTS
            ):
                break
            position += 1
            if entry.kind == "fact":
                seq = entry.seq
            elif entry.kind == "delta" and (not self._deltas or entry.message_id in self._unsent):
                continue
            chunks.append(entry.data)
            size += len(entry.data)
        return b"".join(chunks), position, seq

    def _facts_from_tail(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        for entry in self._log.tail.since(self._log.tail.index_after(self.seq)):
            if entry.kind != "fact":
                continue
            if chunks and (
                size + len(entry.data) > limits.STREAM_WRITE_BYTES or len(chunks) >= limits.STREAM_YIELD_EVENTS
            ):
                break
            chunks.append(entry.data)
            size += len(entry.data)
            self.seq = entry.seq
        return b"".join(chunks)

    async def _facts_from_disk(self) -> bytes:
        data, self.seq = await self._log.page(self.seq)
        # The log may have been trimmed under a slow reader: a gap is said, never jumped over (B41).
        return data or self.reset("the log was trimmed while this stream was behind")

    def reset(self, reason: str) -> bytes:
        """Tell the client that its cursor cannot be honoured, and go on from the head."""
        self.seq = self._log.published
        self._position = None
        return plain_event("reset", "updated", Reset(reason, self._log.epoch, self._log.published))

    # -- without deltas -----------------------------------------------------------------------------------------------

    def _stale(self) -> bool:
        if self._deltas or self._position is None:
            return False
        return any(self._versions.get(id) != live.stamp for id, live in self._log.live.items())

    def _changed_messages(self) -> bytes:
        """Unfinished messages that changed, whole; at most 30 flushes a second, and fewer the longer they are."""
        now = self._loop.time()
        if now < self._whole_due or not self._log.live or self._position != self._log.tail.end:
            return b""  # behind the head the text would come before the fact that started its message
        for id in [id for id in self._versions if id not in self._log.live]:
            del self._versions[id]
        stale = [id for id, live in self._log.live.items() if self._versions.get(id) != live.stamp]
        waited = {id: place for place, id in enumerate(self._versions)}
        data = self._whole_messages(sorted(stale, key=lambda id: waited.get(id, -1)))
        if data:
            pause = max(limits.WHOLE_MESSAGE_SECONDS, len(data) / limits.WHOLE_MESSAGE_BYTES_PER_SECOND)
            self._whole_due = now + pause
        return data

    def _whole_messages(self, ids: list[str]) -> bytes:
        """Messages as they are now, in this order, as many as fit one write and at least one."""
        chunks: list[bytes] = []
        size = 0
        for id in ids:
            live = self._log.live[id]
            # Nothing beyond the fact that started it: that fact said it all.
            data = live.encoded() if live.version or id in self._unsent else b""
            if chunks and size + len(data) > limits.STREAM_WRITE_BYTES:
                break
            self._unsent.discard(id)
            self._versions.pop(id, None)
            self._versions[id] = live.stamp
            if data:
                chunks.append(data)
                size += len(data)
        return b"".join(chunks)
