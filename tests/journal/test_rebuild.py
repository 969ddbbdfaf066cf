"""Differences between the tables and the facts, in words that lead to the row."""

from pathlib import Path

import pytest

from tests.journal.conftest import OpenJournal, change, rows
from tests.journal.facts import session_fact
from tests.journal.two_workspaces import two_workspaces
from windlass import limits
from windlass.journal import maintenance

TABLES = ("sessions", "messages", "runs", "permissions", "questions", "grants", "files")


@pytest.fixture
async def full(open_journal: OpenJournal, tmp_path: Path) -> Path:
    """The file of a journal with rows in every table, that was closed; one session was deleted."""
    journal = open_journal()
    two = await two_workspaces(journal)
    await two.here.durable(two.here.append([session_fact("s1", change="deleted")]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    return tmp_path / "journal.db"


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_lost_its_rows_is_found_and_made_again(full: Path, table: str) -> None:
    """A whole table could be wrong and the check would say that all is well (I15)."""
    everything = rows(full, f"SELECT * FROM {table} ORDER BY 1, 2, 3")
    assert maintenance.check(full) == []
    change(full, f"DELETE FROM {table}")
    differences = maintenance.check(full)
    assert len(differences) == len(everything)
    assert all(text.startswith(f"{table}: the table has nothing, the facts say ") for text in differences)
    maintenance.rebuild_tables(full)
    assert rows(full, f"SELECT * FROM {table} ORDER BY 1, 2, 3") == everything


@pytest.mark.parametrize("table", TABLES)
def test_rows_in_another_order_are_the_same_rows(full: Path, table: str) -> None:
    """A journal that is fine would be called broken, because something was stored anew."""
    change(
        full,
        f"CREATE TABLE kept AS SELECT * FROM {table}",
        f"DELETE FROM {table}",
        f"INSERT INTO {table} SELECT * FROM kept ORDER BY rowid DESC",
        "DROP TABLE kept",
    )
    assert maintenance.check(full) == []


def test_a_row_that_differs_is_named_with_what_differs(full: Path) -> None:
    """People could not tell what is wrong, and whether it matters."""
    ((workspace,),) = rows(full, "SELECT id FROM workspaces WHERE path = '/there'")
    change(full, f"UPDATE runs SET state = 'failed' WHERE id = 'r2' AND workspace = '{workspace}'")
    name = f"{workspace}/r2"
    assert maintenance.check(full) == [
        f"runs: the table has {name} ['failed'], the facts say {name} ['running']",
    ]


def test_a_row_that_no_fact_speaks_of_is_named(full: Path) -> None:
    """Something could be in the tables that never happened (I15)."""
    change(full, "INSERT INTO grants VALUES ('zz', 's1', 'bash', 'run', 'rm -r /', '')")
    assert maintenance.check(full) == ["grants: the table has zz/s1, the facts say nothing"]


def test_two_rows_in_one_place_are_both_named(full: Path) -> None:
    """A row under a wrong name would be shown as if only its columns differed."""
    ((workspace,),) = rows(full, "SELECT id FROM workspaces WHERE path = '/there'")
    change(full, f"UPDATE grants SET session = 's2' WHERE workspace = '{workspace}'")
    assert maintenance.check(full) == [
        f"grants: the table has {workspace}/s2, the facts say {workspace}/s1",
    ]


@pytest.mark.parametrize("bound", [1, 3, 5])
def test_what_is_told_is_bounded(full: Path, monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    """One wrong column of a million rows would fill the terminal, and the memory."""
    monkeypatch.setattr(limits, "REBUILD_DIFFERENCES", bound)
    change(full, "UPDATE messages SET role = 'nobody' WHERE id < 'm3'", "DELETE FROM runs")
    assert len(maintenance.check(full)) == bound
