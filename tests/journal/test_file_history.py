"""Versions of files in the tables, also of a database that an older Windlass made."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from tests.journal.conftest import OpenJournal
from tests.journal.facts import BY, file_fact, message_fact, run_fact, session_fact
from windlass.journal import file_history, maintenance, view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.messages import Message, MessagePrivate, ToolResult, ToolResultData
from windlass.wire.runs import RunPrivate
from windlass.wire.sessions import FilePrivate, FileVersion


def version(id: str, path: str, number: int, run: str, digest: str, before: str, session: str = "s1") -> Fact:
    body = FileVersion(id, session, path, f"content of {id}", number, 1, 1, run_id=run)
    return Fact("file", "updated", body, BY, session, run, key=id, private=FilePrivate(digest, before))


@pytest.fixture
async def log(journal: Journal) -> Log:
    row = await journal.workspace_for("/here")
    log, _ = await journal.open_log(row.id)
    await log.durable(log.append([session_fact("s1")]))
    return log


async def test_the_newest_version_of_each_file_is_known(journal: Journal, log: Log) -> None:
    """I15: a restart would keep what was there before a run once more, or take it for something else."""
    facts = [version("f1", "a", 1, "r1", "d1", ""), version("f2", "a", 2, "r1", "d2", "d1")]
    await log.durable(log.append([*facts, version("f3", "b", 1, "r1", "d3", "absent")]))
    opening = await journal.read(view.opening, log.workspace_id)
    assert opening.files == {("s1", "a"): file_history.Known(2, "d2"), ("s1", "b"): file_history.Known(1, "d3")}
    assert opening.file_bytes == {
        "s1": sum(len(msgspec.json.encode(fact.body)) for fact in facts)
        + len(msgspec.json.encode(version("f3", "b", 1, "r1", "", "").body))
    }


async def test_changes_come_in_the_order_in_which_they_were_made_over_all_runs(journal: Journal, log: Log) -> None:
    """An undo would join them in the wrong order, and refuse what fits or put back what does not."""
    made = [version("f1", "a", 1, "r1", "1", "0"), version("f2", "a", 1, "r2", "2", "1", "s2")]
    await log.durable(log.append([*made, version("f3", "a", 2, "r1", "3", "2"), version("f4", "a", 3, "r3", "4", "3")]))
    found = await journal.read(file_history.changes, log.workspace_id, ["r1", "r2"])
    assert [(change.session, change.before, change.digest) for change in found] == [
        ("s1", "0", "1"),
        ("s2", "1", "2"),
        ("s1", "2", "3"),
    ]


async def test_a_version_is_found_by_what_it_holds_in_its_own_session(journal: Journal, log: Log) -> None:
    """A15: another conversation's file would be put into this one's place."""
    await log.durable(
        log.append([version("f1", "a", 1, "r1", "same", "", "s2"), version("f2", "b", 1, "r1", "same", "")])
    )
    read = journal.read
    assert await read(file_history.version_with, log.workspace_id, "s1", "a", "same") is None
    found = await read(file_history.version_with, log.workspace_id, "s2", "a", "same")
    assert found is not None and b"content of f1" in found


async def test_the_runs_of_all_agents_below_a_run_are_found(journal: Journal, log: Log) -> None:
    """B72: what an agent's agent wrote would stay."""

    def below(id: str, parent: str, session: str) -> Fact:
        fact = run_fact(id, "completed", session=session)
        return msgspec.structs.replace(fact, private=RunPrivate(1, 1, BY, parent_run=parent))

    facts = [below("r1", "", "s1"), below("r2", "r1", "s2"), below("r3", "r2", "s3"), below("r4", "other", "s2")]
    await log.durable(log.append(facts))
    found = await journal.read(file_history.runs_below, log.workspace_id, "r1", ["s2", "s3"])
    assert found == ["r1", "r2", "r3"]


async def test_files_that_were_read_are_those_that_tools_wrote_down(journal: Journal, log: Log) -> None:
    """People would be told of files that the model never saw, or not of those it did."""

    def tool(id: str, metadata: str, is_error: bool = False) -> Fact:
        result = ToolResult(ToolResultData("c1", "view", "x", metadata, is_error))
        body = Message(id, "tool", "s1", [result], "", "", 1, 1)
        return Fact("message", "created", body, BY, "s1", "r1", key=id, private=MessagePrivate(1, len(id)))

    seen = [tool("m1", '{"files": {"b": "1", "a": "2"}}'), tool("m22", '{"files": {"a": "3"}}')]
    odd = [
        tool("m333", '{"files": {"c": "1"}}', is_error=True),
        tool("m4444", "no json"),
        tool("m55555", '{"files": 7}'),
    ]
    await log.durable(log.append([*seen, *odd, message_fact("m9", "words", done=True)]))
    assert await journal.read(file_history.files_read, log.workspace_id, "s1") == ["a", "b"]
    assert await journal.read(file_history.files_read, log.workspace_id, "s2") == []


async def test_a_result_without_its_part_is_being_written(journal: Journal, log: Log) -> None:
    """B19: REST would serve an empty result while streams show its output."""
    body = Message("m1", "tool", "s1", [], "", "", 1, 1)
    fact = Fact("message", "created", body, BY, "s1", "r1", key="m1", private=MessagePrivate(1, 0))
    await log.durable(log.append([fact]))
    (row,) = await journal.read(view.messages, log.workspace_id, "s1") or []
    assert row.unfinished and "m1" in log.live
    whole = msgspec.structs.replace(body, parts=[ToolResult(ToolResultData("c1", "bash", "x", "", False))])
    await log.durable(log.append([msgspec.structs.replace(fact, change="updated", body=whole)]))
    (row,) = await journal.read(view.messages, log.workspace_id, "s1") or []
    assert not row.unfinished and "m1" not in log.live


async def test_a_conversation_begins_where_it_is_told_to(journal: Journal, log: Log) -> None:
    """B17: a run would be sent what its summary stands for, or lose what came after it."""
    messages = [message_fact(f"m{n}", "x", done=True, number=1 + n // 2, index=n % 2) for n in range(5)]
    await log.durable(log.append(messages))

    async def names(first: str) -> list[str]:
        bodies = await journal.read(view.conversation, log.workspace_id, "s1", first)
        return [msgspec.json.decode(body)["id"] for body in bodies]

    assert await names("m3") == ["m3", "m4"]
    assert await names("") == await names("unknown") == ["m0", "m1", "m2", "m3", "m4"]


OLD_FILES = """
DROP INDEX files_run; ALTER TABLE files DROP COLUMN run; ALTER TABLE files DROP COLUMN seq;
ALTER TABLE files DROP COLUMN digest; ALTER TABLE files DROP COLUMN before; PRAGMA user_version = 2;
"""


async def test_a_database_of_an_older_windlass_is_brought_up_and_equals_its_facts(
    open_journal: OpenJournal, tmp_path: Path
) -> None:
    """I15: people who update would lose their histories, or be told that their journal is broken."""
    journal = open_journal()
    row = await journal.workspace_for("/here")
    log, _ = await journal.open_log(row.id)
    await log.durable(log.append([session_fact("s1"), file_fact("f1", "a", 1), file_fact("f2", "a", 2)]))
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    path = tmp_path / "journal.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD_FILES)
    connection.close()
    again = open_journal()
    found = await again.read(file_history.changes, row.id, ["r1"])
    assert [(change.path, change.digest) for change in found] == [("a", ""), ("a", "")]
    await again.close()
    again.closed_by_test = True  # type: ignore[attr-defined]
    assert maintenance.check(path) == []
