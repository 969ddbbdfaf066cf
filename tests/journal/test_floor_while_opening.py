"""A log that is trimmed while it is being opened knows where it begins."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.journal.conftest import new_log
from tests.journal.facts import session_fact
from windlass.clock import Clock
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter


class _TrimmedUnderTheReader(ThreadWriter):
    """Between what an opening reads and its arrival, the log is trimmed, once."""

    journal: Journal
    armed = False

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        found = await super().read(query, *arguments)
        if query is view.opening and self.armed:
            self.armed = False
            await self.journal.trim(retention_days=30, retention_bytes=300)
        return found


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[_TrimmedUnderTheReader]:
    writer = _TrimmedUnderTheReader(SqliteBackend(tmp_path / "journal.db"))
    writer.journal = Journal(writer, Clock(), lambda reason: None)
    yield writer
    await writer.journal.close()


async def test_a_trim_during_the_opening_is_told_to_the_log(writer: _TrimmedUnderTheReader) -> None:
    """Clients would be greeted with a floor that is gone, and told to go on from facts that are gone too (B41)."""
    log = await new_log(writer.journal)
    for number in range(10):
        await log.durable(log.append([session_fact(title=str(number))]))
    writer.journal.close_log(log)
    writer.armed = True
    again = await new_log(writer.journal)
    row = await writer.journal.read(view.workspace_by_path, "/some/project")
    assert row is not None
    assert (again.floor > 0, again.floor) == (True, row.floor)
