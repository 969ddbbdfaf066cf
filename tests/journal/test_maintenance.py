"""Work on a journal at rest: trimmed, and its tables built anew."""

from pathlib import Path

import msgspec
import pytest

from tests.journal.conftest import change, rows
from windlass import limits
from windlass.errors import Invalid
from windlass.journal import maintenance


def test_the_tables_hold_what_the_log_says(at_rest: Path) -> None:
    """REST and a replay of the stream would tell two stories (I15)."""
    assert maintenance.check(at_rest) == []


def test_a_table_that_was_tampered_with_is_found_and_rebuilt(at_rest: Path) -> None:
    """Nobody could mend a view that went wrong (I15)."""
    change(at_rest, "UPDATE messages SET body = CAST('{}' AS BLOB) WHERE id = 'm3'", "DELETE FROM sessions")
    assert len(maintenance.check(at_rest)) == 2
    maintenance.rebuild_tables(at_rest)
    assert maintenance.check(at_rest) == []
    assert sorted(entry.name for entry in at_rest.parent.iterdir() if entry.name.startswith(".")) == []


def test_the_tables_can_be_rebuilt_after_the_log_was_trimmed(at_rest: Path) -> None:
    """What was trimmed from the stream's memory would be lost for a rebuild (I15 B45)."""
    maintenance.prune(at_rest, retention_days=0, retention_bytes=0)
    ((floor,),) = rows(at_rest, "SELECT floor FROM workspaces")
    assert isinstance(floor, int) and floor > 0
    assert maintenance.check(at_rest) == []
    maintenance.rebuild_tables(at_rest)
    assert rows(at_rest, "SELECT count(*) FROM messages") == [(10,)]


def test_pruning_gives_the_space_back_and_says_how_much(at_rest: Path) -> None:
    """People who prune because the disk is full would have won nothing (B45)."""
    change(at_rest, "UPDATE facts SET kind = 'mcp_event', key = ''")  # events: nothing of them is state
    size = at_rest.stat().st_size
    before, after = maintenance.prune(at_rest, retention_days=0, retention_bytes=0)
    assert (before, after) == (size, at_rest.stat().st_size)
    assert after < before - 20_000


@pytest.mark.parametrize(("days", "is_trimmed"), [(9_999, True), (10_000, True), (10_001, False)])
def test_pruning_keeps_what_is_younger_than_it_is_told(at_rest: Path, days: float, is_trimmed: bool) -> None:
    """Clients would be reset that were promised days, or the log kept for ever (B45)."""
    change(at_rest, "UPDATE facts SET time = time - 10000 * 86400 - 3600 WHERE seq <= 11")  # an hour more than asked
    maintenance.prune(at_rest, retention_days=days, retention_bytes=10**9)
    assert rows(at_rest, "SELECT floor FROM workspaces") == [(11 if is_trimmed else 0,)]


def test_pruning_goes_on_until_every_log_is_within_its_bounds(at_rest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One slice of a year would be given up a run, and the disk would stay full (B45)."""
    monkeypatch.setattr(limits, "TRIM_FACTS", 5)
    maintenance.prune(at_rest, retention_days=0, retention_bytes=0)
    assert rows(at_rest, "SELECT floor FROM workspaces") == [(19,)]  # two facts a commit: all but the last


def test_a_rebuild_that_fails_changes_nothing_and_leaves_nothing_behind(at_rest: Path) -> None:
    """A damaged fact would cost people the tables they still had."""
    change(at_rest, "UPDATE facts SET body = CAST('{' AS BLOB) WHERE seq = 5", "DELETE FROM messages WHERE id = 'm3'")
    with pytest.raises(msgspec.DecodeError):
        maintenance.rebuild_tables(at_rest)
    assert rows(at_rest, "SELECT count(*) FROM messages") == [(9,)]
    assert [entry.name for entry in at_rest.parent.iterdir()] == ["journal.db"]


def test_a_rebuild_does_not_trip_over_what_an_earlier_one_left(at_rest: Path) -> None:
    """A rebuild that was killed would be the last one."""
    at_rest.with_name(".journal.db.rebuilt").write_text("half a database")
    maintenance.rebuild_tables(at_rest)
    assert maintenance.check(at_rest) == []


def test_a_rebuild_also_mends_whether_questions_are_skipped(at_rest: Path) -> None:
    """Tools would act unasked because a table says so and no fact does (I10 I15)."""
    change(at_rest, "UPDATE workspaces SET skip = 1")
    assert len(maintenance.check(at_rest)) == 1
    maintenance.rebuild_tables(at_rest)
    assert rows(at_rest, "SELECT skip, head FROM workspaces") == [(0, 21)]


@pytest.mark.parametrize("name", ["nowhere.db", "journal.bak"])
def test_work_on_a_journal_that_is_not_there_is_refused_and_makes_none(tmp_path: Path, name: str) -> None:
    """A mistyped path would look like a journal that is empty."""
    with pytest.raises(Invalid, match="There is no journal"):
        maintenance.check(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
