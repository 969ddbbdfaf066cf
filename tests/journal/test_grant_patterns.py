"""Patterns that people typed, in the tables: kept beside exact answers, rebuilt from the facts, and found after an
upgrade."""

import sqlite3
from pathlib import Path

from tests.journal.conftest import OpenJournal, change, new_log, rows
from tests.journal.facts import answer_fact, question_fact, session_fact
from windlass.journal import maintenance, view
from windlass.journal.journal import Journal
from windlass.journal.migrations import SCHEMA_VERSION, migrate

# As it was before a grant could be a pattern.
_VERSION_3 = """
DROP TABLE grants;
CREATE TABLE grants (workspace TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL,
 resource TEXT NOT NULL, PRIMARY KEY (workspace, session, tool, action, resource));
INSERT INTO grants VALUES ('w', 's', 'bash', 'execute', 'make');
INSERT INTO grants VALUES ('w', 's', 'bash', 'execute', 'ls');
PRAGMA user_version = 3;
"""


async def test_a_pattern_takes_the_place_of_the_exact_resource(journal: Journal) -> None:
    """A restart would ask again what a person allowed, or allow more than they typed (B26)."""
    log = await new_log(journal, "/here")
    facts = [session_fact("s1"), question_fact("q1"), question_fact("q2"), question_fact("q3")]
    for id, pattern in (("q1", "a*"), ("q2", ""), ("q3", "*.txt")):
        facts.append(answer_fact(id, remember=True, pattern=pattern))
    await log.durable(log.append(facts))
    opening = await journal.read(view.opening, log.workspace_id)
    key = ("s1", "edit", "write")
    assert opening.grants == [(*key, "", "a*"), (*key, "a.txt", ""), (*key, "", "*.txt")]
    assert opening.permissions == []


async def test_patterns_come_back_from_the_facts(open_journal: OpenJournal, tmp_path: Path) -> None:
    """A rebuild would lose what people allowed for a session, or make an exact answer of it (I15)."""
    journal = open_journal()
    log = await new_log(journal, "/here")
    answers = [answer_fact("q1", remember=True, pattern="a*"), answer_fact("q2", remember=True)]
    await log.durable(log.append([session_fact("s1"), *answers]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    file = tmp_path / "journal.db"
    everything = rows(file, "SELECT * FROM grants ORDER BY resource")
    change(file, "UPDATE grants SET pattern = '*' WHERE pattern = 'a*'")
    assert len(maintenance.check(file)) == 1
    maintenance.rebuild_tables(file)
    assert rows(file, "SELECT * FROM grants ORDER BY resource") == everything
    assert maintenance.check(file) == []


def test_an_older_database_keeps_its_grants() -> None:
    """An upgrade would forget every answer that was given for a session, or break on the first new one."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    fresh = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'grants'").fetchone()
    connection.executescript(_VERSION_3)
    migrate(connection)
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    assert connection.execute("SELECT * FROM grants ORDER BY rowid").fetchall() == [
        ("w", "s", "bash", "execute", "make", ""),
        ("w", "s", "bash", "execute", "ls", ""),
    ]
    columns = connection.execute("SELECT name, pk FROM pragma_table_info('grants')").fetchall()
    connection.executescript(f"DROP TABLE grants; {fresh[0]};")
    assert columns == connection.execute("SELECT name, pk FROM pragma_table_info('grants')").fetchall()
    connection.close()
