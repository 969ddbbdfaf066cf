"""Work on a journal at rest: trimmed, rebuilt, restored."""

import sqlite3
from pathlib import Path

import pytest

from tests.journal.conftest import OpenJournal, new_log
from tests.journal.facts import message_fact, session_fact
from windlass.errors import Conflict, Invalid
from windlass.journal import maintenance
from windlass.journal.lock import only_writer


@pytest.fixture
async def path(open_journal: OpenJournal, tmp_path: Path) -> Path:
    """A journal of ten messages that was closed."""
    journal = open_journal()
    log = await new_log(journal)
    await log.durable(log.append([session_fact(title="first", change="created")]))
    for number in range(10):
        fact = message_fact(f"m{number}", "words " * 200, done=True, index=number)
        await log.durable(log.append([message_fact(f"m{number}", index=number), fact]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    return tmp_path / "journal.db"


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_the_tables_hold_what_the_log_says(path: Path) -> None:
    """REST and a replay of the stream would tell two stories (I15)."""
    assert maintenance.check(path) == []


def test_a_table_that_was_tampered_with_is_found_and_rebuilt(path: Path) -> None:
    """Nobody could mend a view that went wrong (I15)."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE messages SET body = CAST('{}' AS BLOB) WHERE id = 'm3'")
    connection.execute("DELETE FROM sessions")
    connection.commit()
    connection.close()
    assert len(maintenance.check(path)) == 2
    maintenance.rebuild_tables(path)
    assert maintenance.check(path) == []
    assert sorted(entry.name for entry in path.parent.iterdir() if entry.name.startswith(".")) == []


def test_the_tables_can_be_rebuilt_after_the_log_was_trimmed(path: Path) -> None:
    """What was trimmed from the stream's memory would be lost for a rebuild (I15 B45)."""
    maintenance.prune(path, retention_days=0, retention_bytes=0)
    ((floor,),) = rows(path, "SELECT floor FROM workspaces")
    assert isinstance(floor, int) and floor > 0
    assert maintenance.check(path) == []
    maintenance.rebuild_tables(path)
    assert rows(path, "SELECT count(*) FROM messages") == [(10,)]


def test_a_restored_journal_has_a_new_epoch(path: Path, tmp_path: Path) -> None:
    """An old cursor would silently be taken for a place in another history (A43)."""
    backup = tmp_path / "backup.db"
    backup.write_bytes(path.read_bytes())
    before = rows(path, "SELECT id, epoch FROM workspaces")
    assert maintenance.restore(path, backup) == 1
    after = rows(path, "SELECT id, epoch FROM workspaces")
    assert before[0][0] == after[0][0]
    assert before[0][1] != after[0][1]
    assert rows(path, "SELECT count(*) FROM messages") == [(10,)]


def test_something_that_is_no_journal_is_not_restored(path: Path, tmp_path: Path) -> None:
    """A mistyped path would replace everything with nothing."""
    other = tmp_path / "holiday.db"
    other.write_bytes(b"not a database at all" * 100)
    with pytest.raises(Invalid, match="not a journal"):
        maintenance.restore(path, other)
    assert rows(path, "SELECT count(*) FROM messages") == [(10,)]


def test_one_data_directory_has_one_writer(tmp_path: Path) -> None:
    """Two servers would write over each other's facts (I18)."""
    with only_writer(tmp_path), pytest.raises(Conflict, match="already uses"), only_writer(tmp_path):
        pass
