"""Readers: from any position, once, in order, without a gap, whatever their speed."""

import asyncio

import pytest

from tests.journal.facts import body, decode, message_fact, read, session_fact
from tests.journal.readers import open_reader
from windlass import limits
from windlass.journal.log import Log


async def numbered(log: Log, count: int) -> None:
    await log.durable(log.append([session_fact(title=str(number)) for number in range(count)]))


@pytest.mark.parametrize("after", [0, 1, 7, 19, 20])
async def test_a_reader_gets_everything_after_its_cursor_once_and_in_order(log: Log, after: int) -> None:
    """A client that comes back would miss or repeat what happened meanwhile (B40 I13)."""
    await numbered(log, 20)
    reader = open_reader(log, after, deltas=False)
    log.append([session_fact(title="last")])
    events = await read(reader, 21 - after)
    assert [event["seq"] for event in events] == list(range(after + 1, 22))


async def test_a_reader_behind_the_tail_is_served_from_disk(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowness would cost memory, or events (B42 I14)."""
    monkeypatch.setattr(limits, "TAIL_BYTES", 2_000)
    await numbered(log, 500)
    assert not log.tail.covers(0)
    events = await read(open_reader(log, 0, deltas=False), 500)
    assert [event["seq"] for event in events] == list(range(1, 501))


async def test_a_reader_that_the_tail_overtakes_loses_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that dozed off for a moment would have a hole in its history (I13)."""
    monkeypatch.setattr(limits, "TAIL_BYTES", 2_000)
    await numbered(log, 5)
    reader = open_reader(log, 5, deltas=True)
    await reader.next(0)
    await numbered(log, 200)
    events = await read(reader, 200)
    assert [event["seq"] for event in events] == list(range(6, 206))


async def test_one_write_is_bounded(log: Log) -> None:
    """One client that catches up would hold the loop for everyone else."""
    await numbered(log, 1_000)
    data = await open_reader(log, 0, deltas=False).next(0)
    assert len(decode(data)) <= max(limits.STREAM_YIELD_EVENTS, limits.PAGE_FACTS)


async def test_a_reader_that_joins_in_mid_message_gets_the_text_so_far_and_then_deltas_that_fit(log: Log) -> None:
    """A phone that attaches late would show half an answer (B43)."""
    await log.durable(log.append([message_fact()]))
    early = open_reader(log, log.published, deltas=True)
    await early.next(0)
    log.delta("m1", 0, "Once upon ", "text")
    await read(early, 1)
    late = open_reader(log, log.published, deltas=True)
    (whole,) = decode(await late.next(0))
    assert body(whole)["parts"] == [{"type": "text", "data": {"text": "Once upon "}}]
    log.delta("m1", 0, "a time")
    (delta,) = await read(late, 1)
    assert (body(delta)["at"], body(delta)["text"]) == (len("Once upon "), "a time")


async def test_without_deltas_the_unfinished_message_comes_whole_and_without_id(log: Log) -> None:
    """Clients that know nothing of deltas would see an answer only at its end (B43)."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=False)
    await reader.next(0)
    log.delta("m1", 0, "word", "text")
    (event,) = await read(reader, 1)
    assert (event["type"], event["seq"], body(event)["parts"][0]["data"]["text"]) == ("message", 0, "word")


async def test_whole_messages_come_less_often_the_longer_they_are(log: Log) -> None:
    """The bytes sent for one long answer would grow with the square of its length."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=False)
    await reader.next(0)
    log.delta("m1", 0, "x" * limits.WHOLE_MESSAGE_BYTES_PER_SECOND, "text")
    await read(reader, 1)
    log.delta("m1", 0, "y")
    await asyncio.sleep(0)
    assert await reader.next(0.05) == b""


async def test_a_reset_message_starts_again_from_nothing(log: Log) -> None:
    """After a provider's retry the first attempt's words would stay in front of the second's."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "false start", "text")
    log.append([message_fact()])
    log.delta("m1", 0, "again", "text")
    events = await read(reader, 3)
    assert [event["type"] for event in events] == ["message_delta", "message", "message_delta"]
    assert body(events[2])["at"] == 0


async def test_readers_at_the_same_place_share_the_same_bytes(log: Log) -> None:
    """Each of a thousand clients would cost its own copy of every event."""
    readers = [open_reader(log, 0, deltas=True) for _ in range(3)]
    for reader in readers:
        await reader.next(0)
    waiting = [asyncio.create_task(reader.next(5.0)) for reader in readers]
    await asyncio.sleep(0)
    await numbered(log, 3)
    chunks = [await task for task in waiting]
    assert chunks[0] is chunks[1] is chunks[2]


async def test_a_deleted_sessions_words_are_gone_from_memory_and_the_numbers_stay(log: Log) -> None:
    """People delete a session because its words must not be read any more (B45)."""
    await log.durable(log.append([session_fact(title="secret"), message_fact("m1", "secret words", done=True)]))
    await log.durable(log.append([session_fact(change="deleted")]))
    events = await read(open_reader(log, 0, deltas=False), 3)
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert "secret" not in str(events)


async def test_a_closed_log_ends_its_readers_after_what_was_published(log: Log) -> None:
    """The last words before a close would be lost on everyone attached."""
    await numbered(log, 2)
    reader = open_reader(log, 0, deltas=False)
    log.close()
    assert len(await read(reader, 2)) == 2
    assert await reader.next(5.0) == b""


async def test_a_reader_of_whole_messages_sees_the_second_attempt_of_a_message_that_started_again(log: Log) -> None:
    """It would show the emptied message until the answer is over (B43)."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=False)
    await reader.next(0)
    log.delta("m1", 0, "first", "text")
    await read(reader, 1)
    await log.durable(log.append([message_fact()]))
    log.delta("m1", 0, "second", "text")
    await log.durable(log.append([session_fact()]))
    shown = ""
    while "second" not in shown:
        shown += (await reader.next(1.0)).decode()
    assert shown.index("session") < shown.index("second")


async def test_what_readers_share_is_bounded(log: Log) -> None:
    """Readers at a hundred different places would keep a hundred copies of the tail."""
    await numbered(log, 200)
    for after in range(200):
        reader = open_reader(log, 0, deltas=True)
        reader.seq, reader._position = after, log.tail.index_after(after)
        await reader.next(0)
    assert len(log.join_cache) <= limits.JOINED_CHUNKS
