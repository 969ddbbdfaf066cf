"""A journal on a real SQLite file, written by its real thread."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.journal.facts import message_fact, session_fact
from tests.journal.readers import close_readers
from windlass.clock import Clock
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.reader import Reader
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
    for log in list(journal._logs.values()):
        log.close()
    if not getattr(journal, "closed_by_test", False):
        await journal.close()


@pytest.fixture(autouse=True)
async def readers_end_with_their_test() -> AsyncIterator[None]:
    yield
    close_readers()


@pytest.fixture
async def journal(open_journal: OpenJournal) -> Journal:
    return open_journal()


@pytest.fixture
async def log(journal: Journal) -> AsyncIterator[Log]:
    log = await new_log(journal)
    yield log
    log.close()


@pytest.fixture(autouse=True)
def readers_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader keeps one timer until its subscription closes it; here there is none."""
    made: list[Reader] = []
    begin = Reader.__init__

    def noted(reader: Reader, log: Log, after: int, deltas: bool) -> None:
        begin(reader, log, after, deltas)
        made.append(reader)

    monkeypatch.setattr(Reader, "__init__", noted)
    yield
    for reader in made:
        reader.close()


async def new_log(journal: Journal, path: str = "/some/project") -> Log:
    row = await journal.workspace_for(path)
    log, _ = await journal.open_log(row.id)
    return log


@pytest.fixture
async def at_rest(open_journal: OpenJournal, tmp_path: Path) -> Path:
    """The file of a journal of ten messages that was closed."""
    journal = open_journal()
    log = await new_log(journal)
    await log.durable(log.append([session_fact(title="first", change="created")]))
    for number in range(10):
        fact = message_fact(f"m{number}", "words " * 200, done=True, index=number)
        await log.durable(log.append([message_fact(f"m{number}", index=number), fact]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    return tmp_path / "journal.db"


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query of the file finds, from outside."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def change(path: Path, *statements: str) -> None:
    """Change the file behind the journal's back."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
