"""Questions to people in the log and its tables: they wait there until they are over, also through a restart."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from tests.journal.conftest import OpenJournal, new_log
from tests.journal.facts import batch_end_fact, batch_fact, message_fact, session_fact
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.migrations import _STEPS, migrate
from windlass.journal.records import Trim
from windlass.journal.sqlite import trim


def ids(log: Log) -> list[str]:
    return [msgspec.json.decode(raw)["id"] for raw in log.questions.values()]


async def test_batches_are_known_from_their_commit_until_they_are_over(log: Log) -> None:
    """Whoever attaches would be asked what was answered, or not what waits (B24 I12)."""
    head = log.append([batch_fact("b1"), batch_fact("b2")])
    assert ids(log) == []
    await log.durable(head)
    assert (ids(log), list(log.questions)) == (["b1", "b2"], ["b1", "b2"])
    await log.durable(log.append([batch_end_fact("b1"), batch_end_fact("b9")]))
    assert ids(log) == ["b2"]


async def test_a_log_that_is_opened_again_knows_what_waits(open_journal: OpenJournal) -> None:
    """After a crash nobody would withdraw the questions of the run that ended with it (I11)."""
    first = open_journal()
    log = await new_log(first)
    await log.durable(log.append([batch_fact("b2"), batch_fact("b1"), batch_fact("b3"), batch_end_fact("b1")]))
    await first.close()
    first.closed_by_test = True  # type: ignore[attr-defined]
    assert ids(await new_log(open_journal())) == ["b2", "b3"]


async def test_a_deleted_session_takes_its_questions_along_and_no_others(journal: Journal) -> None:
    """The words of a deleted conversation would stay in a table (B45)."""
    log = await new_log(journal)
    facts = [session_fact("s1"), session_fact("s2"), batch_fact("b1"), batch_fact("b2", session="s2")]
    await log.durable(log.append([*facts, session_fact("s1", change="deleted")]))
    opening = await journal.read(view.opening, log.workspace_id)
    assert [msgspec.json.decode(body)["id"] for body in opening.questions] == ["b2"]


async def test_a_question_stays_in_a_trimmed_log_while_it_waits(open_journal: OpenJournal, tmp_path: Path) -> None:
    """One that waits would be lost in a rebuild; one that was answered would stay for ever (I15 B45)."""
    journal = open_journal()
    log = await new_log(journal)
    await log.durable(log.append([batch_fact("b1"), batch_fact("b2"), batch_end_fact("b1"), message_fact()]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as connection:
        trim(connection, Trim(log.workspace_id, 4))
        kept = connection.execute("SELECT seq FROM facts ORDER BY seq").fetchall()
    assert kept == [(2,), (4,)]


def test_a_database_from_before_there_were_questions_gets_their_table() -> None:
    """A new Windlass would break on the journal of the one before."""
    tables = []
    for make in (migrate, lambda connection: connection.executescript(_STEPS[1])):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            make(connection)
            tables.append(connection.execute("PRAGMA table_info(questions)").fetchall())
    assert tables[0] == tables[1] != []
