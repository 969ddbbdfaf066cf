"""Looking for words in conversations: what is found, in which order, and how much is looked at."""

import sqlite3

import pytest

from tests.journal.facts import BY, message_fact, session_fact
from tests.journal.two_workspaces import Two, two_workspaces
from windlass import limits
from windlass.journal import search
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.messages import (
    Binary,
    BinaryData,
    Message,
    MessagePrivate,
    Part,
    Reasoning,
    ReasoningData,
    ShellCommand,
    ShellCommandData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)


@pytest.fixture
async def two(journal: Journal) -> Two:
    return await two_workspaces(journal)


async def found(log: Log, journal: Journal, text: str, limit: int = 50) -> list[search.Hit]:
    """What all slices together bring."""
    hits: list[search.Hit] = []
    before = [2**62]
    while before:
        piece = await journal.read(search.messages, log.workspace_id, search.words(text), limit, before.pop())
        hits += piece.hits
        if piece.before:
            before.append(piece.before)
    return hits


def of_parts(id: str, *parts: Part) -> Fact:
    message = Message(id, "tool", "s1", list(parts), "", "", 1, 1)
    return Fact("message", "updated", message, BY, "s1", "r1", key=id, private=MessagePrivate(1, int(id[1:])))


async def said(log: Log, *facts: Fact) -> None:
    await log.durable(log.append([session_fact(title="Talk"), *facts]))


async def test_words_are_found_in_messages_the_newest_first(log: Log, journal: Journal) -> None:
    """People would look for what they said yesterday below what they said last year."""
    await said(
        log, message_fact("m1", "an anchor", at=5), message_fact("m2", "no"), message_fact("m3", "anchors", at=9)
    )
    hits = await found(log, journal, "anchor")
    assert [(hit.message, hit.session, hit.title, hit.role, hit.at) for hit in hits] == [
        ("m3", "s1", "Talk", "assistant", 9),
        ("m1", "s1", "Talk", "assistant", 5),
    ]


async def test_a_message_that_changed_is_new_again(log: Log, journal: Journal) -> None:
    """What an agent has just written would stand below what it said before it."""
    await said(log, message_fact("m1", "anchor"), message_fact("m2", "anchor"), message_fact("m1", "the anchor"))
    assert [hit.message for hit in await found(log, journal, "anchor")] == ["m1", "m2"]


async def test_upper_and_lower_case_are_alike_in_every_language(log: Log, journal: Journal) -> None:
    """People would have to remember how a word was written."""
    await said(log, message_fact("m1", "Der GRÖSSTE Anker"))
    assert [len(await found(log, journal, text)) for text in ("größte", "gröSSTE", "ANKER", "Öss")] == [0, 1, 1, 1]


@pytest.mark.parametrize("text", ["50%", "_x_", "a*b", "[z", "c:\\d", 'say "hi"', "two\nlines", "é", "…", "\t", "a.b"])
async def test_no_character_is_special(text: str, log: Log, journal: Journal) -> None:
    """A percent sign would find everything, and a quotation mark nothing."""
    await said(log, message_fact("m1", f"before {text} after"), message_fact("m2", "500 x aab z c:d say hi axb"))
    assert [hit.message for hit in await found(log, journal, text)] == ["m1"]


async def test_what_tools_were_given_and_gave_is_found(log: Log, journal: Journal) -> None:
    """The command that once worked could not be found again."""
    await said(
        log,
        of_parts("m1", ToolCall(ToolCallData("c1", "bash", '{"command":"make anchor"}'))),
        of_parts("m2", ToolResult(ToolResultData("c1", "bash", "built the anchor", "", False))),
        of_parts("m3", ShellCommand(ShellCommandData("ls", "anchor.txt", 0))),
    )
    assert [hit.message for hit in await found(log, journal, "anchor")] == ["m3", "m2", "m1"]


async def test_what_nobody_reads_is_not_found(log: Log, journal: Journal) -> None:
    """Every search would find pictures, ids and names of fields."""
    await said(
        log,
        of_parts("m1", Binary(BinaryData("anchor.png", "image/png", "anchor"))),
        of_parts("m2", Reasoning(ReasoningData("anchor"))),
        of_parts("m3", ToolResult(ToolResultData("anchor", "anchor", "x", "anchor", False))),
    )
    assert await found(log, journal, "anchor") == []
    assert await found(log, journal, "session_id") == []


async def test_an_excerpt_is_one_line_around_the_words(log: Log, journal: Journal) -> None:
    """A list of hits would be a list of whole messages."""
    text = "a" * 500 + "\n\n  the\tANCHOR\nholds " + "b" * 500
    await said(log, message_fact("m1", text), message_fact("m2", "anchor"))
    short, long = await found(log, journal, "anchor")
    assert short.excerpt == "anchor"
    assert " the ANCHOR holds bbb" in long.excerpt and long.excerpt.startswith("…a") and long.excerpt.endswith("b…")
    assert len(long.excerpt) <= 2 * limits.SEARCH_EXCERPT_CHARACTERS + len("anchor") + 2


async def test_another_workspace_is_not_looked_at(two: Two) -> None:
    """A client would read the conversations of a project it was never let into (A15)."""
    assert await found(two.here, two.journal, "there") == []
    assert [hit.message for hit in await found(two.here, two.journal, "asked again")] == ["m3"]
    assert {hit.title for hit in await found(two.here, two.journal, "asked")} == {"here first"}


async def test_titles_are_found_the_one_that_changed_last_first(two: Two) -> None:
    """A conversation could not be found by its name."""
    hits: list[search.Hit] = await two.read(search.titles, search.words("HERE"), 10)
    assert [(hit.session, hit.message, hit.excerpt) for hit in hits] == [
        ("s2", "", "here second"),
        ("s3", "", "here child"),
        ("s4", "", "here same time"),
        ("s1", "", "here first"),
    ]
    assert len(await two.read(search.titles, search.words("HERE"), 2)) == 2


async def test_a_deleted_session_is_not_found(two: Two) -> None:
    """What was deleted could still be read, a line at a time."""
    await two.here.durable(two.here.append([session_fact("s1", change="deleted")]))
    assert [hit.session for hit in await found(two.here, two.journal, "here")] == ["s2"]


async def test_one_look_is_bounded_and_the_next_goes_on_from_there(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One search over years of conversations would keep everybody else from reading (I14)."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_ROWS", 2)
    await said(log, *(message_fact(f"m{number}", "anchor", index=number) for number in range(5)))
    first = await journal.read(search.messages, log.workspace_id, search.words("anchor"), 50)
    assert ([hit.message for hit in first.hits], first.rows) == (["m4", "m3"], 2)
    assert [hit.message for hit in await found(log, journal, "anchor")] == ["m4", "m3", "m2", "m1", "m0"]


async def test_one_look_is_bounded_in_bytes(log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages of many megabytes would do the same (I14)."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_BYTES", 10)
    await said(log, message_fact("m1", "anchor"), message_fact("m2", "anchor"))
    piece = await journal.read(search.messages, log.workspace_id, search.words("anchor"), 50)
    assert (len(piece.hits), piece.rows) == (1, 1) and piece.before


async def test_as_many_are_found_as_were_asked_for(log: Log, journal: Journal) -> None:
    """A word that is everywhere would bring everything."""
    await said(log, *(message_fact(f"m{number}", "anchor", index=number) for number in range(5)))
    piece = await journal.read(search.messages, log.workspace_id, search.words("anchor"), 3)
    assert [hit.message for hit in piece.hits] == ["m4", "m3", "m2"]


async def test_a_look_reads_no_more_than_its_slice(log: Log, journal: Journal) -> None:
    """Every look would read, copy and sort all that was ever said, to show the newest hit (I14)."""
    await said(log, message_fact("m1", "anchor"))
    statements: list[str] = []

    def watched(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(statements.append)
        try:
            search.messages(connection, log.workspace_id, search.words("anchor"), 50)
        finally:
            connection.set_trace_callback(None)

    await journal.read(watched)
    (query,) = [statement for statement in statements if "FROM messages" in statement]
    plan = await journal.read(lambda connection: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")])
    assert plan == ["SEARCH messages USING INTEGER PRIMARY KEY (rowid<?)"]


async def test_messages_of_another_workspace_count_as_looked_at(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search in a small project would keep everybody waiting while it passes over those of a large one (I14)."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_ROWS", 3)
    await two.there.durable(two.there.append([message_fact(f"m{number}", "there") for number in range(10, 20)]))
    first = await two.read(search.messages, search.words("here"), 50)
    assert (first.hits, first.rows) == ([], 3) and first.before
    assert len(await found(two.here, two.journal, "here")) == 5
