"""A disk that refuses: nothing more is acknowledged, everyone is told, nothing is tried twice."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.journal.conftest import new_log, rows
from tests.journal.facts import session_fact
from tests.journal.readers import open_reader
from windlass.clock import Clock
from windlass.errors import JournalPoisoned
from windlass.journal.journal import Journal
from windlass.journal.records import NewWorkspace, Record
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter


class FullDisk(SqliteBackend):
    """Real SQLite until it is told that the disk is full."""

    full = False
    attempts = 0

    def commit(self, records: Sequence[Record]) -> None:
        if self.full:
            self.attempts += 1
            raise sqlite3.OperationalError("database or disk is full")
        super().commit(records)


async def test_a_failed_commit_is_told_to_whoever_waits_and_never_tried_again(tmp_path: Path) -> None:
    """Something would be acknowledged that the disk does not hold (I1)."""
    backend, reasons = FullDisk(tmp_path / "journal.db"), list[str]()
    journal = Journal(ThreadWriter(backend), Clock(), reasons.append)
    log = await new_log(journal)
    await log.durable(log.append([session_fact(title="kept")]))
    reader = open_reader(log, log.published, deltas=False)
    backend.full = True
    head = log.append([session_fact(title="lost")])
    with pytest.raises(JournalPoisoned):
        await log.durable(head)
    with pytest.raises(JournalPoisoned):
        log.append([session_fact()])
    assert await reader.next(5.0) == b"" and log.closed
    assert log.published == 1
    assert (backend.attempts, len(reasons)) == (1, 1)
    assert "full" in reasons[0]
    await journal.close()


async def test_everything_that_waits_or_comes_later_is_refused(tmp_path: Path) -> None:
    """A request would hang, or be told that all is well, on a disk that refuses (I1)."""
    backend = FullDisk(tmp_path / "journal.db")
    journal = Journal(ThreadWriter(backend), Clock(), lambda reason: None)
    log = await new_log(journal)
    backend.full = True
    log.append([session_fact()])
    waiting = [asyncio.create_task(journal.settled()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, JournalPoisoned, JournalPoisoned]
    assert journal.statistics().poisoned
    for refused in (journal.check, journal.check_room):
        with pytest.raises(JournalPoisoned, match="Free some space"):
            refused()
    with pytest.raises(JournalPoisoned):
        await log.durable(0)
    await journal.close()


async def test_what_comes_after_the_failure_is_not_written(tmp_path: Path) -> None:
    """The disk would hold the second half of a story whose first half it refused (I12)."""
    backend = FullDisk(tmp_path / "journal.db")
    journal = Journal(ThreadWriter(backend), Clock(), lambda reason: None)
    log = await new_log(journal)
    backend.full = True
    head = log.append([session_fact()])
    with pytest.raises(JournalPoisoned):
        await log.durable(head)
    backend.full = False
    journal.stage([NewWorkspace("w9", "/nine", "e9", 1.0)])
    await asyncio.sleep(0)
    await journal.close()
    assert backend.attempts == 1
    assert rows(tmp_path / "journal.db", "SELECT id FROM workspaces") == [(log.workspace_id,)]


async def test_the_same_refusal_is_never_raised_twice(tmp_path: Path) -> None:
    """Its traceback would grow with every request until the memory is full."""
    backend = FullDisk(tmp_path / "journal.db")
    journal = Journal(ThreadWriter(backend), Clock(), lambda reason: None)
    backend.full = True
    with pytest.raises(JournalPoisoned):
        await new_log(journal)
    refusals = []
    for _ in range(2):
        with pytest.raises(JournalPoisoned) as refusal:
            journal.check()
        refusals.append(refusal.value)
    assert refusals[0] is not refusals[1] and refusals[0].message == refusals[1].message
    await journal.close()


async def test_a_fact_that_is_on_disk_and_cannot_be_shown_is_not_waited_for_in_vain(tmp_path: Path) -> None:
    """Every request behind it would hang, and nobody would know why (I14)."""
    reasons = list[str]()
    journal = Journal(ThreadWriter(SqliteBackend(tmp_path / "journal.db")), Clock(), reasons.append)
    log = await new_log(journal)
    log.tail = None  # type: ignore[assignment]  # what cannot happen: showing a fact fails
    with pytest.raises(JournalPoisoned):
        await log.durable(log.append([session_fact()]))
    assert "AttributeError" in reasons[0]
    await journal.close()
