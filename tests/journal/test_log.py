"""Facts are numbered, durable before visible, and in one order with the text around them."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from tests.journal.conftest import OpenJournal, new_log
from tests.journal.facts import BY, body, message_fact, read, session_fact
from tests.journal.readers import open_reader
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.messages import Message, Reasoning


async def test_facts_are_numbered_densely_from_one(log: Log) -> None:
    """A gap in the numbers would look like a lost event to every client (I12)."""
    assert log.append([session_fact(), session_fact()]) == 2
    assert log.append([session_fact()]) == 3


async def test_a_fact_is_on_disk_when_durable_returns(log: Log, tmp_path: Path) -> None:
    """An answer that rests on it would be a promise the disk does not know of (I1)."""
    await log.durable(log.append([session_fact(title="kept")]))
    other = sqlite3.connect(tmp_path / "journal.db")
    try:
        assert other.execute("SELECT count(*) FROM facts").fetchone() == (1,)
    finally:
        other.close()


async def test_a_fact_is_not_published_before_it_is_committed(log: Log) -> None:
    """A reader would see what a crash can still take back (I12)."""
    head = log.append([session_fact()])
    assert log.published == 0
    await log.durable(head)
    assert log.published == head


async def test_text_is_not_shown_before_the_facts_staged_ahead_of_it(log: Log) -> None:
    """Words that rest on an answer would be seen though the answer may yet be lost (I12)."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "before ", "text")
    log.append([session_fact(title="between")])
    log.delta("m1", 0, "after", "text")
    events = await read(reader, 3)
    assert [event["type"] for event in events] == ["message_delta", "session", "message_delta"]
    assert [body(event).get("at") for event in events] == [0, None, 7]


async def test_what_a_message_gained_since_the_last_publish_is_one_delta(log: Log) -> None:
    """A token flood would become an event a token for every reader."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    for word in ("one ", "two ", "three"):
        log.delta("m1", 0, word, "text")
    (event,) = await read(reader, 1)
    assert (body(event)["text"], body(event)["type"]) == ("one two three", "text")


async def test_offsets_count_code_points(log: Log) -> None:
    """A client in another language would put text into the wrong place behind an emoji (B43)."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "👩‍🚀é", "text")
    await read(reader, 1)
    log.delta("m1", 0, "!")
    (event,) = await read(reader, 1)
    assert body(event)["at"] == len("👩‍🚀é")


async def test_deltas_add_up_to_the_message_that_ends_it(log: Log) -> None:
    """What people watched being written would differ from what is kept (I16)."""
    log.append([message_fact()])
    for word in ("never ", "let ", "go"):
        log.delta("m1", 0, word, "text")
    staged = log.staged_message("m1")
    assert staged is not None and staged.text == "never let go"


async def test_a_part_that_leaves_a_hole_is_refused(log: Log) -> None:
    """Parts are placed by their index: a hole would shift every later one."""
    log.append([message_fact()])
    with pytest.raises(ValueError, match="part 2"):
        log.delta("m1", 2, "x", "text")


async def test_one_append_is_one_commit_however_long(journal: Journal, tmp_path: Path) -> None:
    """A crash in the middle of an ending would leave a run half ended."""
    log = await new_log(journal)
    log.append([session_fact() for _ in range(4_000)])
    await log.durable(log.append([session_fact() for _ in range(6_000)]))
    other = sqlite3.connect(tmp_path / "journal.db")
    try:
        sizes = other.execute("SELECT count(*) FROM facts GROUP BY batch").fetchall()
    finally:
        other.close()
    assert sizes in ([(10_000,)], [(4_000,), (6_000,)])


async def test_unfinished_text_is_kept_by_a_checkpoint(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash would lose minutes of an answer that was being written."""
    monkeypatch.setattr("windlass.limits.CHECKPOINT_SECONDS", 0.0)
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "so far", "text")
    await read(reader, 1)
    rows: list[tuple[str, object, bytes]] = []
    while not rows or b"so far" not in rows[0][2]:
        await journal.settled()
        rows = await journal.read(view.run_messages, log.workspace_id, "s1", 1)
    assert msgspec.json.decode(rows[0][2], type=Message).text == "so far"


async def test_a_log_that_is_opened_again_goes_on_where_it_was(open_journal: OpenJournal) -> None:
    """A client's cursor would point nowhere after a restart (B40)."""
    first = open_journal()
    log = await new_log(first)
    await log.durable(log.append([session_fact(title="old")]))
    await first.close()
    first.closed_by_test = True  # type: ignore[attr-defined]
    again = await new_log(open_journal())
    assert (again.epoch, again.head) == (log.epoch, 1)
    assert again.append([session_fact()]) == 2


async def test_a_waiter_of_a_closed_log_is_still_answered(journal: Journal) -> None:
    """A request that raced with the close of its workspace would hang for ever."""
    log = await new_log(journal)
    head = log.append([session_fact()])
    journal.close_log(log)
    await log.durable(head)
    assert log.published == head


async def test_every_fact_says_who_caused_it(log: Log) -> None:
    """Nobody could tell who cancelled or allowed something (B46)."""
    reader = open_reader(log, 0, deltas=False)
    log.append([Fact("session", "updated", session_fact().body, BY, "s1", key="s1")])
    (event,) = await read(reader, 1)
    assert event["by"] == {"name": "tester", "client_id": "client"}


async def test_a_fact_that_cannot_be_encoded_leaves_no_gap_and_no_half_commit(log: Log) -> None:
    """The facts beside it would be shown and never stored, and the next number would be missing (I12 I13)."""
    with pytest.raises(UnicodeEncodeError):
        log.append([session_fact(title="good"), session_fact(title="half a character: \ud800")])
    await log.durable(log.append([session_fact(title="next")]))
    events = await read(open_reader(log, 0, deltas=False), 1)
    assert [(event["seq"], body(event)["title"]) for event in events] == [(1, "next")]


async def test_text_that_cannot_be_shown_is_refused_where_it_is_said(log: Log) -> None:
    """It would break the publishing of everything behind it, for everyone (I14)."""
    log.append([message_fact()])
    with pytest.raises(ValueError, match="surrogates"):
        log.delta("m1", 0, "\ud800", "text")
    await log.durable(log.append([session_fact()]))


async def test_a_signature_is_kept_beside_the_thinking_and_not_in_it(log: Log) -> None:
    """People would read it, and the provider would refuse the history."""
    log.append([message_fact()])
    log.delta("m1", 0, "I think", "reasoning")
    log.sign("m1", 0, "c2ln")
    staged = log.staged_message("m1")
    assert staged is not None
    (part,) = staged.parts
    assert isinstance(part, Reasoning)
    assert (part.data.thinking, part.data.signature) == ("I think", "c2ln")


async def test_everything_large_counts_as_waiting_for_the_disk(journal: Journal) -> None:
    """A slow disk would fill the memory with attachments that nobody counted."""
    log = await new_log(journal)
    log.append([Fact("run", "updated", _Over(), BY, "s1", "r1", key="r1", private={"number": 1, "x": "y" * 100_000})])
    assert journal.statistics().staged_bytes > 100_000
    await journal.settled()
    assert journal.statistics().staged_bytes == 0


class _Over(msgspec.Struct):
    state: str = "completed"
    is_terminal: bool = True
