"""A journal on a real SQLite file, written by its real thread."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from windlass.clock import Clock
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter

OpenJournal = Callable[[], Journal]


@pytest.fixture
async def open_journal(tmp_path: Path) -> AsyncIterator[OpenJournal]:
    """Opens the journal of this test's directory; a second call finds what the first one left."""
    async with AsyncExitStack() as stack:

        def open() -> Journal:
            journal = Journal(ThreadWriter(SqliteBackend(tmp_path / "journal.db")), Clock(), lambda reason: None)
            stack.push_async_callback(_close, journal)
            return journal

        yield open


async def _close(journal: Journal) -> None:
    if not getattr(journal, "closed_by_test", False):
        await journal.close()


@pytest.fixture
async def journal(open_journal: OpenJournal) -> Journal:
    return open_journal()


@pytest.fixture
async def log(journal: Journal) -> Log:
    return await new_log(journal)


async def new_log(journal: Journal, path: str = "/some/project") -> Log:
    row = await journal.workspace_for(path)
    log, _ = await journal.open_log(row.id)
    return log
