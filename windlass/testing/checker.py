"""The checker: compares everything clients were told and sent with what the disk holds, against the invariants.

`check` reads a finished history; `check_database` reads the database itself, after each server process.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from windlass.journal.rebuild import compare
from windlass.testing.check_cancels import check_cancels
from windlass.testing.check_conversations import check_conversations
from windlass.testing.check_families import check_families
from windlass.testing.check_permissions import check_permissions
from windlass.testing.check_questions import check_questions
from windlass.testing.check_reads import check_reads
from windlass.testing.check_runs import check_runs
from windlass.testing.check_streams import check_streams
from windlass.testing.history import History, Violation
from windlass.testing.ledger import Ledger
from windlass.testing.run_record import Records


def check(history: History, records: Records) -> None:
    """Everything, at the end of a simulation; what is wrong is put into the history."""
    check_runs(history, records)
    check_cancels(history, records)
    check_families(history, records)
    check_conversations(history, records)
    check_permissions(history, records)
    check_questions(history, records)
    check_streams(history)
    check_reads(history)


def check_database(path: Path, history: History) -> list[Violation]:
    """The tables are what the facts say (I15), and the facts are what was committed (I12)."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found = [Violation("I15", difference) for difference in compare(connection)]
        for ledger in history.ledgers.values():
            found += _check_log(connection, ledger)
        stale = connection.execute(
            "SELECT c.message FROM checkpoints c LEFT JOIN messages m ON m.workspace = c.workspace AND m.id = c.message"
            " WHERE m.id IS NULL OR NOT m.unfinished"
        )
        return found + [Violation("B45", f"text kept of {message}, which is not being written") for (message,) in stale]


def _check_log(connection: sqlite3.Connection, ledger: Ledger) -> list[Violation]:
    floor, head = connection.execute("SELECT floor, head FROM workspaces WHERE id = ?", (ledger.id,)).fetchone()
    rows = connection.execute(
        "SELECT seq, body FROM facts WHERE workspace = ? AND seq > ? ORDER BY seq", (ledger.id, floor)
    ).fetchall()
    if head != len(ledger.facts) or [seq for seq, _ in rows] != list(range(floor + 1, head + 1)):
        numbers = [seq for seq, _ in rows]
        return [Violation("I12", f"{ledger.id} has facts {numbers} above {floor}; committed were {len(ledger.facts)}")]
    return [
        Violation("I12", f"{ledger.id} #{seq} is not what was committed: {body!r}")
        for seq, body in rows
        if body != ledger.facts[seq - 1].row.body and ledger.facts[seq - 1].row.session not in ledger.deleted
    ]
