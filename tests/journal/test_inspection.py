"""Looking at a journal from outside: what is broken is told, what cannot be looked at is an error, in bounded time."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from windlass.journal.inspection import damage


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A database for which looking takes more steps than are made between two looks at the clock."""
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, body TEXT)")
        connection.executemany("INSERT INTO facts (body) VALUES (?)", [("x" * 20,)] * 20_000)
        connection.execute("CREATE INDEX by_body ON facts (body)")
    return path


def test_a_whole_journal_is_found_whole_in_the_time_there_is(large: Path) -> None:
    """A doctor that never has time would never say that all is well."""
    assert damage(large, seconds=60.0) == []


def test_without_time_nothing_is_said(large: Path) -> None:
    """A check that was given up would be told as one that found nothing."""
    assert damage(large, seconds=0.0) is None


def test_a_file_that_is_not_there_is_an_error_with_its_reason(tmp_path: Path) -> None:
    """It would be called damaged, and a backup restored over it."""
    with pytest.raises(OSError, match="unable to open"):
        damage(tmp_path / "nothing.db", seconds=1.0)


def test_a_file_that_somebody_keeps_locked_is_an_error_with_its_reason(large: Path) -> None:
    """It would be called damaged, or end in a traceback."""
    large.with_name("journal.db-wal").touch()  # somebody has it open
    with closing(sqlite3.connect(large, isolation_level=None)) as owner:
        owner.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OSError, match="locked"):
            damage(large, seconds=0.01)


def test_a_server_that_comes_meanwhile_is_looked_at_again(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read without a lock while it is written may be half of a change, and would be called damage."""
    large.write_bytes(b"half of a change" * 100)
    whole = large.with_name("whole.db")
    with closing(sqlite3.connect(whole)) as connection, connection:
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY)")
    close = sqlite3.Connection.close
    looked: list[str] = []

    class Meanwhile(sqlite3.Connection):
        def close(self) -> None:
            close(self)
            if not looked:
                whole.replace(large)
                large.with_name("journal.db-wal").touch()
            looked.append("once")

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=Meanwhile, **kwargs))
    assert damage(large, seconds=5.0) == [] and len(looked) == 2
