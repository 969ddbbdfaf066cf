"""What is given up when the log is trimmed, and what never is."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from windlass import limits
from windlass.journal.records import FactRow, NewWorkspace, Trim
from windlass.journal.sqlite import SqliteBackend, trim_floor

SIZE = 100  # bytes of each body


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[SqliteBackend]:
    backend = SqliteBackend(tmp_path / "journal.db")
    backend.commit([NewWorkspace("w1", "/one", "e1", 1.0), NewWorkspace("w2", "/two", "e2", 1.0)])
    yield backend
    backend.close()


def fact(
    seq: int, key: str = "", *, kind: str = "mcp_event", change: str = "updated", workspace: str = "w1"
) -> FactRow:
    """One whose time is its number."""
    private = b'{"request_id":"q1","tool":"","action":"","resource":""}'
    body = b'"' + b"x" * (SIZE - 2) + b'"'
    return FactRow(workspace, seq, float(seq), b"{}", "s1", "", kind, change, key, body, private)


def kept(backend: SqliteBackend, workspace: str = "w1") -> list[int]:
    def query(connection: sqlite3.Connection) -> list[int]:
        rows = connection.execute("SELECT seq FROM facts WHERE workspace = ? ORDER BY seq", (workspace,))
        return [seq for (seq,) in rows]

    return backend.read(query)


def floors(backend: SqliteBackend) -> dict[str, int]:
    return backend.read(lambda connection: dict(connection.execute("SELECT id, floor FROM workspaces").fetchall()))


def test_the_newest_fact_of_a_key_stays(backend: SqliteBackend) -> None:
    """The tables could not be built again from what is left (I15)."""
    keys = ["a", "a", "b", "", "a", "c", "a"]
    backend.commit([fact(seq, key, kind="lsp_event") for seq, key in enumerate(keys, 1)])
    backend.commit([Trim("w1", 5)])
    assert kept(backend) == [3, 5, 6, 7]  # of "a", 5 is the newest at the floor: 7 is not in the snapshot


def test_keys_of_different_kinds_and_workspaces_are_different_things(backend: SqliteBackend) -> None:
    """A session's state would be given up because a run has the same id."""
    backend.commit([fact(1, "a", kind="lsp_event"), fact(2, "a", kind="mcp_event"), fact(3)])
    backend.commit([fact(seq, "a", kind="lsp_event", workspace="w2") for seq in (1, 2, 3)])
    backend.commit([Trim("w1", 3)])
    assert (kept(backend), kept(backend, "w2")) == ([1, 2], [1, 2, 3])
    assert floors(backend) == {"w1": 3, "w2": 0}


def test_what_was_deleted_leaves_nothing_in_the_snapshot(backend: SqliteBackend) -> None:
    """The log would grow with every session that was ever deleted."""
    backend.commit([fact(1, "a", kind="lsp_event"), fact(2, "a", kind="lsp_event", change="deleted"), fact(3, "b")])
    backend.commit([Trim("w1", 2)])
    assert kept(backend) == [3]


def test_a_question_stays_while_it_waits(backend: SqliteBackend) -> None:
    """A question people have not answered yet would be lost in a rebuild; one they have would stay for ever (B24)."""
    backend.commit([fact(1, "q1", kind="permission_request"), fact(2, "q2", kind="permission_request"), fact(3, "x")])
    backend.commit([fact(4, kind="permission_notification"), fact(5, "q3", kind="permission_request")])
    backend.commit([fact(6, "q4", kind="permission_request")])
    backend.commit([fact(1, "q1", kind="permission_request", workspace="w2")])
    backend.commit([Trim("w1", 5)])
    assert kept(backend) == [2, 3, 5, 6]


def test_a_floor_never_moves_down(backend: SqliteBackend) -> None:
    """A cursor would be honoured although facts after it are gone (B41)."""
    backend.commit([fact(seq) for seq in range(1, 6)])
    backend.commit([Trim("w1", 4)])
    backend.commit([Trim("w1", 2)])
    assert floors(backend) == {"w1": 4, "w2": 0}


@pytest.mark.parametrize(
    ("oldest", "budget", "floor"),
    [
        pytest.param(0.0, 99 * SIZE, 0, id="young_and_small_stays"),
        pytest.param(4.0, 99 * SIZE, 3, id="older_goes"),
        pytest.param(4.5, 99 * SIZE, 4, id="older_goes_by_time_and_not_by_number"),
        pytest.param(0.0, 6 * SIZE, 0, id="just_within_the_budget_stays"),
        pytest.param(0.0, 6 * SIZE - 1, 1, id="one_byte_more_goes"),
        pytest.param(0.0, 2 * SIZE, 4, id="what_is_over_the_budget_goes"),
        pytest.param(99.0, 0, 5, id="the_last_commit_stays"),
    ],
)
def test_the_floor_keeps_what_is_young_and_within_the_budget(
    backend: SqliteBackend, oldest: float, budget: int, floor: int
) -> None:
    """The disk would fill up, or clients be reset that were promised days (B45)."""
    for seq in range(1, 7):
        backend.commit([fact(seq), fact(seq, workspace="w2")])
    assert backend.read(trim_floor, "w1", oldest, budget) == floor


def test_a_floor_is_at_the_end_of_a_commit(backend: SqliteBackend) -> None:
    """A client could be resumed in the middle of what happened at once."""
    backend.commit([fact(1)])
    backend.commit([fact(2), fact(3), fact(4)])
    backend.commit([fact(5)])
    assert [backend.read(trim_floor, "w1", oldest, 10**9) for oldest in (3.0, 4.0, 5.0)] == [1, 1, 4]


def test_what_lies_below_the_floor_does_not_count_against_the_budget(backend: SqliteBackend) -> None:
    """The snapshot of a long history would push every new fact out of the log."""
    for seq in range(1, 7):
        backend.commit([fact(seq, f"key {seq}")])
    backend.commit([Trim("w1", 3)])
    assert backend.read(trim_floor, "w1", 0.0, 3 * SIZE) == 0
    assert backend.read(trim_floor, "w1", 0.0, 2 * SIZE) == 4


def test_a_clock_that_was_set_back_does_not_cost_what_came_before(backend: SqliteBackend) -> None:
    """A fact with an old time behind younger ones would take them along (B45)."""
    for seq, time in ((1, 1.0), (2, 9.0), (3, 1.0), (4, 9.0)):
        backend.commit([msgspec.structs.replace(fact(seq), time=time)])
    assert backend.read(trim_floor, "w1", 5.0, 10**9) == 1


def test_a_slice_of_trimming_is_bounded(backend: SqliteBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trimming a year at once would hold up every commit behind it."""
    monkeypatch.setattr(limits, "TRIM_FACTS", 3)
    for seq in range(1, 9):
        backend.commit([fact(seq)])
    assert backend.read(trim_floor, "w1", 99.0, 10**9) == 2
    backend.commit([Trim("w1", 2)])
    assert backend.read(trim_floor, "w1", 99.0, 10**9) == 4


def test_an_unknown_workspace_has_nothing_to_trim(backend: SqliteBackend) -> None:
    """The hourly trim would fail for all because one was just removed."""
    assert backend.read(trim_floor, "w9", 99.0, 0) == 0
