"""A disk that refuses: nothing more is acknowledged, everyone is told, nothing is tried twice."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.journal.conftest import new_log
from tests.journal.facts import session_fact
from windlass.clock import Clock
from windlass.errors import JournalPoisoned
from windlass.journal.journal import Journal
from windlass.journal.reader import Reader
from windlass.journal.records import Record
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
    reader = Reader(log, log.published, deltas=False)
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
