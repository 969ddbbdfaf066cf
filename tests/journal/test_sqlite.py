"""The file: private, durable, all or nothing, and refused when it is not ours to use."""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.journal import view
from windlass.journal.migrations import SCHEMA_VERSION, SchemaTooNew
from windlass.journal.records import FactRow, NewWorkspace
from windlass.journal.sqlite import JournalUnusable, SqliteBackend


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def backend(path: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(path)
    backend.commit([NewWorkspace("w1", "/one", "e1", 1.0)])
    yield backend
    backend.close()


def event(seq: int, workspace: str = "w1") -> FactRow:
    return FactRow(workspace, seq, 1.0, b'{"name":"x"}', "", "", "mcp_event", "created", "", b"{}", None)


def numbers(backend: SqliteBackend) -> list[int]:
    return [row.seq for row in backend.read(view.facts, "w1", 0, 99)]


def test_only_its_owner_may_read_the_file(backend: SqliteBackend, path: Path) -> None:
    """Everyone with an account on the machine could read all conversations (A13)."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    """Whoever can write the data directory could make us overwrite any file we may write (A13)."""
    (tmp_path / "elsewhere.db").touch()
    path.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(JournalUnusable, match="is a link"):
        SqliteBackend(path)


def test_a_file_that_is_no_database_is_refused_in_words(path: Path) -> None:
    """People would be shown a traceback, and not which file it is about."""
    path.write_bytes(b"these are not the facts you are looking for" * 50)
    with pytest.raises(JournalUnusable, match=r"journal\.db cannot be used"):
        SqliteBackend(path)


def test_a_newer_schema_is_refused(backend: SqliteBackend, path: Path) -> None:
    """An older Windlass would write into tables it does not understand."""
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    other.close()
    with pytest.raises(SchemaTooNew, match="Use a newer Windlass"):
        SqliteBackend(path)


def test_a_file_that_is_opened_again_holds_what_it_held(backend: SqliteBackend, path: Path) -> None:
    """A restart would begin with an empty log."""
    backend.commit([event(1)])
    again = SqliteBackend(path)
    assert numbers(again) == [1]
    again.close()


@pytest.mark.parametrize(("sync", "level"), [("full", 2), ("normal", 1)])
def test_a_commit_is_synced_as_the_config_says(path: Path, sync: str, level: int) -> None:
    """A power cut would take back what was acknowledged; only a trace of system calls could show it from outside."""
    backend = SqliteBackend(path, sync)  # type: ignore[arg-type]
    assert backend._writer.execute("PRAGMA synchronous").fetchone() == (level,)
    assert backend._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    backend.close()


def test_the_default_is_the_safe_one(backend: SqliteBackend) -> None:
    """People who changed nothing would lose acknowledged facts in a power cut."""
    assert backend._writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_batch_that_fails_leaves_nothing_and_the_next_one_is_whole(backend: SqliteBackend) -> None:
    """Half of what happened at once would be on disk (I12)."""
    backend.commit([event(1)])
    with pytest.raises(sqlite3.IntegrityError):
        backend.commit([event(2), event(1)])
    assert numbers(backend) == [1]
    backend.commit([event(2), event(3)])
    assert numbers(backend) == [1, 2, 3]


def test_facts_of_one_commit_share_a_batch_that_is_newer_than_all_before(backend: SqliteBackend, path: Path) -> None:
    """Trimming could split what happened at once, also across a restart."""
    backend.commit([event(1), event(2)])
    backend.commit([event(3)])
    again = SqliteBackend(path)
    again.commit([event(4)])
    again.close()
    other = sqlite3.connect(path)
    batches = [batch for (batch,) in other.execute("SELECT batch FROM facts ORDER BY seq")]
    other.close()
    assert batches[0] == batches[1] < batches[2] < batches[3]


def test_the_head_is_that_of_the_workspace_the_fact_is_in(backend: SqliteBackend) -> None:
    """The log of another project would have a gap after the next restart (I12)."""
    backend.commit([NewWorkspace("w2", "/two", "e2", 1.0), event(1), event(2), event(1, "w2")])
    assert {row.id: row.head for row in backend.read(view.workspaces)} == {"w1": 2, "w2": 1}


def test_a_read_sees_one_state_whatever_is_committed_meanwhile(backend: SqliteBackend) -> None:
    """An answer would be put together from two moments (B19)."""

    def twice(connection: sqlite3.Connection) -> list[int]:
        before = len(view.facts(connection, "w1", 0, 99))
        backend.commit([event(1)])
        return [before, len(view.facts(connection, "w1", 0, 99))]

    assert backend.read(twice) == [0, 0]
    assert numbers(backend) == [1]


def test_a_read_that_fails_does_not_hold_on_to_its_state(backend: SqliteBackend) -> None:
    """Every later read of that thread would be answered from the past."""

    def fail(connection: sqlite3.Connection) -> None:
        view.workspaces(connection)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        backend.read(fail)
    backend.commit([event(1)])
    assert numbers(backend) == [1]


def test_a_reader_cannot_write(backend: SqliteBackend) -> None:
    """A query could change the tables behind the log's back."""
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        backend.read(lambda connection: connection.execute("DELETE FROM workspaces"))


def test_each_thread_reads_for_itself(backend: SqliteBackend) -> None:
    """A read in one thread would end the transaction of another."""
    seen: list[sqlite3.Connection] = []

    def look(connection: sqlite3.Connection) -> None:
        seen.append(connection)

    def look_twice() -> None:
        backend.read(look)
        backend.read(look)

    thread = threading.Thread(target=look_twice)
    thread.start()
    thread.join()
    look_twice()
    assert seen[0] is seen[1] is not seen[2] is seen[3]


def test_a_closed_backend_holds_no_connection(path: Path) -> None:
    """The write-ahead log would be left behind, and a backup of the one file would lack the newest facts."""
    backend = SqliteBackend(path)
    backend.commit([NewWorkspace("w1", "/one", "e1", 1.0)])
    backend.read(view.workspaces)
    backend.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["journal.db"]
