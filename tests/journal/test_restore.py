"""A backup in the journal's place: whole, private, and another history than the one clients remember."""

import sqlite3
import stat
from pathlib import Path

import pytest

from tests.journal.conftest import OpenJournal, change, new_log, rows
from tests.journal.facts import session_fact
from windlass.errors import Invalid
from windlass.journal import maintenance


@pytest.fixture
def backup(at_rest: Path, tmp_path: Path) -> Path:
    """A copy of the journal, made before it lost all of its messages."""
    copy = tmp_path / "backup.db"
    copy.write_bytes(at_rest.read_bytes())
    change(at_rest, "DELETE FROM messages")
    return copy


def test_a_restored_journal_has_a_new_epoch(at_rest: Path, backup: Path) -> None:
    """An old cursor would silently be taken for a place in another history (A43)."""
    before = rows(at_rest, "SELECT id, epoch FROM workspaces")
    assert maintenance.restore(at_rest, backup) == 1
    after = rows(at_rest, "SELECT id, epoch FROM workspaces")
    assert before[0][0] == after[0][0]
    assert before[0][1] != after[0][1]
    assert rows(at_rest, "SELECT count(*) FROM messages") == [(10,)]


def test_something_that_is_no_journal_is_not_restored(at_rest: Path, tmp_path: Path) -> None:
    """A mistyped path would replace everything with nothing."""
    other = tmp_path / "holiday.db"
    other.write_bytes(b"not a database at all" * 100)
    with pytest.raises(Invalid, match="not a journal"):
        maintenance.restore(at_rest, other)
    assert rows(at_rest, "SELECT count(*) FROM messages") == [(10,)]


def test_every_log_of_a_restored_journal_has_an_epoch_of_its_own(at_rest: Path, backup: Path) -> None:
    """A cursor of one project would be honoured in another."""
    change(backup, "INSERT INTO workspaces (id, path, epoch, created_at) VALUES ('w2', '/two', 'e2', 1.0)")
    assert maintenance.restore(at_rest, backup) == 2
    epochs = {epoch for (epoch,) in rows(at_rest, "SELECT epoch FROM workspaces")}
    assert len(epochs) == 2 and "e2" not in epochs
    assert ("e2",) in rows(backup, "SELECT epoch FROM workspaces")  # the backup stays what it was


async def test_a_server_goes_on_with_a_restored_journal(at_rest: Path, backup: Path, open_journal: OpenJournal) -> None:
    """A backup that cannot be used is none."""
    at_rest.with_name("journal.db-wal").write_bytes(b"of the journal that was replaced")
    maintenance.restore(at_rest, backup)
    assert not at_rest.with_name("journal.db-wal").exists()
    log = await new_log(open_journal())
    assert log.append([session_fact()]) == 22
    await log.durable(22)


def test_a_restored_journal_is_private_and_alone(at_rest: Path, backup: Path) -> None:
    """Everyone with an account on the machine could read all conversations (A13)."""
    at_rest.with_name(".journal.db.restored").write_text("left by one that was killed")
    backup.chmod(0o644)
    maintenance.restore(at_rest, backup)
    assert stat.S_IMODE(at_rest.stat().st_mode) == 0o600
    assert sorted(entry.name for entry in at_rest.parent.iterdir()) == ["backup.db", "journal.db"]


def test_a_database_of_something_else_is_not_restored(at_rest: Path, backup: Path) -> None:
    """A mistyped path would replace everything with somebody's bookmarks."""
    change(backup, "DROP TABLE workspaces")
    with pytest.raises(Invalid, match="not a journal"):
        maintenance.restore(at_rest, backup)


def test_a_damaged_backup_is_not_restored(at_rest: Path, backup: Path) -> None:
    """People would find out weeks later, when the journal that was still whole is long overwritten."""
    _damage(backup)
    before = at_rest.read_bytes()
    with pytest.raises(Invalid, match="is damaged"):
        maintenance.restore(at_rest, backup)
    assert at_rest.read_bytes() == before


def test_a_backup_that_is_not_there_is_refused(at_rest: Path, tmp_path: Path) -> None:
    """The journal would be replaced by an empty one."""
    with pytest.raises(Invalid, match="There is no journal"):
        maintenance.restore(at_rest, tmp_path / "nowhere.db")


def _damage(path: Path) -> None:
    """Wipe the end of an index, as a bad sector would."""
    connection = sqlite3.connect(path)
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages_order'").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[page * size - 200 : page * size] = bytes(200)
    path.write_bytes(content)
