"""The journal of a data directory: every workspace's log goes through one writer, in order, durable before visible.

A failed commit poisons it: nothing more is acknowledged, streams end, and the process is told to leave. Memory is never
rolled back, and an fsync is never tried twice: what the disk holds after a failed one is unknown.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from windlass import limits
from windlass.clock import Clock
from windlass.errors import JournalPoisoned, Unavailable
from windlass.ids import new_epoch, new_id
from windlass.journal import view
from windlass.journal.log import Log
from windlass.journal.records import Checkpoint, FactRow, NewWorkspace, Record, Trim
from windlass.journal.sqlite import trim_floor
from windlass.journal.writer import Writer

Result = TypeVar("Result")


class Statistics(msgspec.Struct, frozen=True):
    staged_records: int
    staged_bytes: int
    commits: int
    poisoned: bool


class Journal:
    def __init__(self, writer: Writer, clock: Clock, on_poison: Callable[[str], None]) -> None:
        self.clock = clock
        self.poisoned: JournalPoisoned | None = None
        self._writer = writer
        self._on_poison = on_poison
        self._logs: dict[str, Log] = {}
        self._staged: deque[Sequence[Record]] = deque()
        self._staged_bytes = 0
        self._writing = False
        self._handing_over = False
        self._commits = 0
        self._trims: Counter[str] = Counter()  # by workspace
        self._staged_records = 0  # ever
        self._committed_records = 0  # ever
        self._settlers: deque[tuple[int, asyncio.Future[None]]] = deque()

    def statistics(self) -> Statistics:
        return Statistics(
            self._staged_records - self._committed_records, self._staged_bytes, self._commits, self.poisoned is not None
        )

    # -- workspaces ---------------------------------------------------------------------------------------------------

    async def workspace_for(self, path: str) -> view.WorkspaceRow:
        """The workspace of this real path; made, durably, if there is none. One caller at a time per path."""
        row = await self.read(view.workspace_by_path, path)
        if row is not None:
            return row
        self.stage([NewWorkspace(new_id("ws"), path, new_epoch(), self.clock.now())])
        await self.settled()
        row = await self.read(view.workspace_by_path, path)
        assert row is not None
        return row

    async def open_log(self, workspace_id: str) -> tuple[Log, view.Opening]:
        """Load what a workspace needs in memory, and start its log."""
        await self.settled()  # a log of it that was just closed may still have facts on their way
        while True:
            trims = self._trims[workspace_id]
            opening = await self.read(view.opening, workspace_id)
            if trims == self._trims[workspace_id]:
                break  # else look again: a floor that moved while we read would never be told to this log
        log = Log(self, opening)
        self._logs[workspace_id] = log
        return log, opening

    def close_log(self, log: Log) -> None:
        """Readers end. Facts on their way are still committed, and whoever waits for them is told."""
        log.close()
        self._forget_if_done(log)

    def _forget_if_done(self, log: Log) -> None:
        if log.closed and log.published >= log.head and self._logs.get(log.workspace_id) is log:
            del self._logs[log.workspace_id]

    # -- writing ------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise when nothing can be acknowledged any more."""
        if self.poisoned is not None:
            # A new one each time: the traceback of one that is raised again and again grows for ever.
            raise JournalPoisoned(self.poisoned.message)

    def check_room(self) -> None:
        """Raise when the disk is so far behind that new work must wait. Called before a decision, never after."""
        self.check()
        if self._staged_bytes > limits.STAGED_BYTES:
            raise Unavailable("The disk cannot keep up with what is being written. Try again in a moment.")

    @property
    def is_behind(self) -> bool:
        """Whether the disk is so slow that what can wait should."""
        return self._staged_bytes > limits.STAGED_BYTES // 2

    def stage(self, records: Sequence[Record]) -> None:
        """Put records into the next batch: all of them into the same one, so that a crash leaves all or none."""
        self._staged.append(records)
        self._staged_records += len(records)
        self._staged_bytes += sum(map(_size, records))
        if not self._writing and not self._handing_over:
            # At the end of this turn of the loop, so that what is decided in one turn is one commit.
            self._handing_over = True
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._handing_over = False
        if self._writing or not self._staged or self.poisoned is not None:
            return
        self._writing = True
        batch = self._cut()
        self._writer.submit(batch, lambda error: self._committed(batch, error))

    def _cut(self) -> list[Record]:
        batch: list[Record] = []
        while self._staged and len(batch) < limits.COMMIT_FACTS:
            batch += self._staged.popleft()
        return batch

    def _committed(self, batch: Sequence[Record], error: BaseException | None) -> None:
        self._writing = False
        if error is not None:
            self._poison(error)
            return
        self._commits += 1
        self._committed_records += len(batch)
        self._staged_bytes -= sum(map(_size, batch))
        try:
            self._publish(batch)
        except Exception as problem:  # what is on disk and cannot be shown would be waited for, for ever
            self._poison(problem)
            return
        self._settle()
        self._hand_over()

    def _publish(self, batch: Sequence[Record]) -> None:
        heads: dict[str, int] = {}
        for record in batch:
            match record:
                case FactRow():
                    heads[record.workspace] = record.seq
                case Trim():
                    self._trims[record.workspace] += 1
                    if (log := self._logs.get(record.workspace)) is not None:
                        log.floor = max(log.floor, record.floor)
        for workspace_id, seq in heads.items():
            if (log := self._logs.get(workspace_id)) is not None:
                log.committed(seq)
                self._forget_if_done(log)

    def _poison(self, error: BaseException) -> None:
        self.poisoned = JournalPoisoned(
            "The server could not write to its disk, so nothing more is accepted. Free some space or mend the disk, "
            "then start it again; everything that was acknowledged is there."
        )
        for log in list(self._logs.values()):
            log.fail(self.poisoned)
        self._settle()
        self._on_poison(f"{type(error).__name__}: {error}")

    # -- reading ------------------------------------------------------------------------------------------------------

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        return await self._writer.read(query, *arguments)

    async def facts(self, workspace_id: str, after: int, upto: int) -> list[FactRow]:
        return await self._writer.read(view.facts, workspace_id, after, upto)

    async def settled(self) -> None:
        """Return when everything staged until now is on disk."""
        self.check()
        if self._committed_records < self._staged_records:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settlers.append((self._staged_records, waiter))
            await waiter

    def _settle(self) -> None:
        while self._settlers and (self.poisoned or self._settlers[0][0] <= self._committed_records):
            _, waiter = self._settlers.popleft()
            if waiter.done():
                continue
            if self.poisoned is not None:
                waiter.set_exception(self.poisoned)
            else:
                waiter.set_result(None)

    async def read_published(self, log: Log, query: Callable[..., Result], *arguments: Any) -> Result:
        """A query of `view` about one workspace, answered when everything it saw is visible to streams too (B19)."""
        answer: tuple[int, Result] = await self._writer.read(view.at_head, log.workspace_id, query, *arguments)
        # Facts beyond this log's own were written after it was closed, by the one that was opened next: it will never
        # hear of their commit, and whoever asked through the closed one would wait for ever.
        await log.durable(min(answer[0], log.head))
        return answer[1]

    # -- retention ----------------------------------------------------------------------------------------------------

    async def trim(self, retention_days: float, retention_bytes: int) -> int:
        """Trim every log to its bounds, in slices; returns how many floors were moved."""
        oldest = self.clock.now() - retention_days * 86400.0
        moved = 0
        for row in await self.read(view.workspaces):
            while floor := await self.read(trim_floor, row.id, oldest, retention_bytes):
                self.stage([Trim(row.id, floor)])
                await self.settled()
                moved += 1
        return moved

    async def close(self) -> None:
        """Write what is staged, then stop."""
        if self.poisoned is None:
            await self.settled()
        await self._writer.close()


def _size(record: Record) -> int:
    """What a staged record holds in memory, as far as it can be large."""
    match record:
        case FactRow():
            return len(record.body) + len(record.private or b"")
        case Checkpoint():
            return len(record.body)
        case _:
            return 0
