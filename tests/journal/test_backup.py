"""A copy of the journal while it is written: one moment, whole, private, and never over another file."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.journal.conftest import OpenJournal, change, new_log, rows
from tests.journal.facts import session_fact
from windlass.errors import Conflict, Invalid
from windlass.journal import maintenance
from windlass.journal.backup import backup


async def test_a_backup_of_a_journal_in_use_is_restored_with_all_that_was_acknowledged(
    open_journal: OpenJournal, tmp_path: Path
) -> None:
    """A backup that is only good when nobody works is made by nobody."""
    log = await new_log(open_journal())
    head = log.append([session_fact()])
    await log.durable(head)
    copy = tmp_path / "copy.db"
    assert backup(tmp_path / "journal.db", copy) == copy.stat().st_size
    log.append([session_fact()])
    other = tmp_path / "other"
    other.mkdir()
    (other / "journal.db").touch()
    assert maintenance.restore(other / "journal.db", copy) == 1
    assert rows(other / "journal.db", "SELECT count(*), max(seq) FROM facts") == [(head, head)]


def test_a_backup_is_one_moment_while_another_process_writes_without_pause(at_rest: Path, tmp_path: Path) -> None:
    """Facts without their messages, or half of a commit, would be found when the backup is needed (I15)."""
    change(at_rest, "PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(at_rest)) as connection:
        connection.execute("CREATE TABLE pairs (number INTEGER)")
    with writing_pairs(at_rest):
        for number in range(5):
            copy = tmp_path / f"copy{number}.db"
            backup(at_rest, copy)
            ((count, halves),) = rows(copy, "SELECT count(*), count(*) - 2 * count(DISTINCT number) FROM pairs")
            assert count and halves == 0


@contextmanager
def writing_pairs(journal: Path) -> Iterator[None]:
    """Two rows a transaction, as fast as it goes."""
    is_over = threading.Event()
    has_begun = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(journal, isolation_level=None, timeout=30)) as connection:
            number = 0
            while not is_over.is_set():
                number += 1
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO pairs VALUES (?)", [(number,)] * 2)
                connection.execute("COMMIT")
                has_begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert has_begun.wait(10)
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_backup_never_takes_the_place_of_another_file(at_rest: Path, tmp_path: Path) -> None:
    """Last week's, or the journal itself, would be gone by a typing mistake."""
    precious = tmp_path / "precious"
    precious.write_text("holiday")
    for target in (precious, at_rest):
        before = target.read_bytes()
        with pytest.raises(Conflict, match="is there already"):
            backup(at_rest, target)
        assert target.read_bytes() == before


def test_a_backup_is_private_and_one_file(at_rest: Path, tmp_path: Path) -> None:
    """Everyone with an account on the machine could read all conversations (A13)."""
    directory = tmp_path / "backups"
    directory.mkdir()
    old = os.umask(0)
    try:
        backup(at_rest, directory / "copy.db")
    finally:
        os.umask(old)
    assert [entry.name for entry in directory.iterdir()] == ["copy.db"]
    assert stat.S_IMODE((directory / "copy.db").stat().st_mode) == 0o600


def test_a_backup_needs_no_second_file_when_it_is_read(at_rest: Path, tmp_path: Path) -> None:
    """Its newest part would be in a file beside it, which is lost when only one of them is carried away."""
    change(at_rest, "PRAGMA journal_mode = WAL")
    backup(at_rest, tmp_path / "copy.db")
    assert rows(tmp_path / "copy.db", "PRAGMA journal_mode") == [("delete",)]


def test_a_damaged_journal_is_noticed_when_it_is_backed_up(at_rest: Path, tmp_path: Path) -> None:
    """Good backups would be thrown away one by one for damaged ones."""
    content = bytearray(at_rest.read_bytes())
    content[8192:12288] = os.urandom(4096)
    at_rest.write_bytes(content)
    with pytest.raises(Invalid):
        backup(at_rest, tmp_path / "copy.db")
    assert not [entry.name for entry in tmp_path.iterdir() if "copy" in entry.name]


def test_there_is_no_backup_of_nothing(tmp_path: Path) -> None:
    """A mistyped data directory would be backed up every night, empty."""
    with pytest.raises(Invalid, match="There is no journal"):
        backup(tmp_path / "journal.db", tmp_path / "copy.db")
    with pytest.raises(Invalid, match="cannot be written"):
        (tmp_path / "journal.db").touch()
        backup(tmp_path / "journal.db", tmp_path / "nowhere" / "copy.db")
    assert [entry.name for entry in tmp_path.iterdir()] == ["journal.db"]


@pytest.mark.parametrize("name", ["copy.db", "c" * 250], ids=["in the way", "too long"])
def test_a_backup_that_cannot_be_begun_says_so_and_leaves_nothing(name: str, at_rest: Path, tmp_path: Path) -> None:
    """An empty file of that name would be taken for a backup, and the next one be refused for it."""
    directory = tmp_path / "backups"
    (directory / ".copy.db.making").mkdir(parents=True)
    with pytest.raises(Invalid, match="cannot be written"):
        backup(at_rest, directory / name)
    assert [entry.name for entry in directory.iterdir()] == [".copy.db.making"]


def test_a_disk_that_fills_up_leaves_nothing_behind(at_rest: Path, tmp_path: Path) -> None:
    """What is left of each try would keep the disk full."""
    directory = tmp_path / "backups"
    directory.mkdir()
    program = (
        "import resource, sys; from pathlib import Path; from windlass.journal.backup import backup\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "backup(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program, str(at_rest), str(directory / "copy.db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode and "windlass.errors.Invalid" in ended.stderr, ended.stderr
    assert list(directory.iterdir()) == []
