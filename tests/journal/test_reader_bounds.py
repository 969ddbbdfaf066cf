"""How much a reader takes at once, what it is told when its place is gone, and what it is spared."""

import asyncio

import pytest

from tests.journal.conftest import new_log
from tests.journal.facts import body, decode, message_fact, read, session_fact
from tests.journal.readers import open_reader
from windlass import limits
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.reader import Reader


async def append(log: Log, count: int) -> int:
    """Facts of one size; returns the size of one as it is sent."""
    await log.durable(log.append([session_fact(title=f"{number:04}") for number in range(count)]))
    return len(next(log.tail.since(log.tail.end - 1)).data)


async def writes(reader: Reader) -> list[list[int]]:
    """The numbers of the facts in each write, until there is nothing more."""
    found = []
    while data := await reader.next(0):
        found.append([event["seq"] for event in decode(data)])
    return found


@pytest.mark.parametrize("is_at_the_head", [False, True])
async def test_a_write_holds_as_many_bytes_as_it_may_and_no_more(
    log: Log, monkeypatch: pytest.MonkeyPatch, is_at_the_head: bool
) -> None:
    """A client that sleeps would hold more than the bound, or one that is awake would be sent crumbs (I14)."""
    reader = open_reader(log, 0, deltas=True)
    if is_at_the_head:
        await reader.next(0)
    size = await append(log, 5)
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", 2 * size)
    assert await writes(reader) == [[1, 2], [3, 4], [5]]
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", 2 * size - 1)
    reader.seq, reader._position = 0, (0 if is_at_the_head else None)
    assert await writes(reader) == [[1], [2], [3], [4], [5]]
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", 1)  # one event that is too large goes alone
    reader.seq, reader._position = 3, (3 if is_at_the_head else None)
    assert await writes(reader) == [[4], [5]]


@pytest.mark.parametrize("is_at_the_head", [False, True])
async def test_a_small_event_does_not_overtake_a_large_one(
    log: Log, monkeypatch: pytest.MonkeyPatch, is_at_the_head: bool
) -> None:
    """A client would take the number of the small one for all it has, and never ask for the large one (I13)."""
    reader = open_reader(log, 0, deltas=True)
    if is_at_the_head:
        await reader.next(0)
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", 1_500)
    await log.durable(log.append([session_fact(title="x" * size) for size in (1, 2_000, 1, 1)]))
    assert await writes(reader) == [[1], [2], [3, 4]]


async def test_a_reader_far_behind_a_log_that_closed_is_handed_nothing(log: Log) -> None:
    """It would wait for a disk that is being closed; with its cursor it comes back and reads the rest then."""
    await append(log, 3)
    log.tail.clear(log.published)
    log.close()
    assert await open_reader(log, 0, deltas=True).next(5.0) == b""


@pytest.mark.parametrize("is_at_the_head", [False, True])
async def test_a_write_holds_as_many_events_as_it_may_and_no_more(
    log: Log, monkeypatch: pytest.MonkeyPatch, is_at_the_head: bool
) -> None:
    """One client that catches up would hold the loop for everyone else."""
    monkeypatch.setattr(limits, "STREAM_YIELD_EVENTS", 2)
    reader = open_reader(log, 0, deltas=True)
    if is_at_the_head:
        await reader.next(0)
    await append(log, 5)
    assert await writes(reader) == [[1, 2], [3, 4], [5]]
    assert reader.seq == 5


async def test_a_reader_that_catches_up_is_sent_facts_and_not_the_text_between_them(log: Log) -> None:
    """Text would come before the message it belongs to, and once more with it (I16)."""
    await log.durable(log.append([message_fact()]))
    log.delta("m1", 0, "so far", "text")
    log._flush()
    log.note("presence", {})
    await log.durable(log.append([session_fact()]))
    events = await read(open_reader(log, 0, deltas=True), 3)
    assert [(event["type"], event["seq"]) for event in events] == [("message", 1), ("session", 2), ("message", 0)]
    assert body(events[2])["parts"] == [{"type": "text", "data": {"text": "so far"}}]


async def test_a_reset_says_why_and_goes_on_from_the_head(journal: Journal) -> None:
    """A client would not know that it has to read everything anew, or miss what comes after (B41)."""
    log = await new_log(journal)
    for _ in range(4):
        await append(log, 1)
    reader = open_reader(log, 1, deltas=False)
    log.tail.clear(log.published)
    await journal.trim(retention_days=-1, retention_bytes=10**9)
    (event,) = decode(await reader.next(0))
    assert (event["type"], event["seq"], event["payload"]["type"]) == ("reset", 0, "updated")
    assert (body(event)["epoch"], body(event)["head"]) == (log.epoch, 4)
    assert "trimmed" in body(event)["reason"]
    await append(log, 1)
    assert await writes(reader) == [[5]]


async def test_a_reader_that_is_woken_returns_at_once_and_empty_handed(log: Log) -> None:
    """The stream of a client that left would be held until its next heartbeat."""
    reader = open_reader(log, 0, deltas=True)
    reader.wake()  # before it ever waited: nothing to do
    waiting = asyncio.create_task(reader.next(60.0))
    await asyncio.sleep(0)
    reader.wake()
    async with asyncio.timeout(5):
        assert await waiting == b""


async def test_a_reader_is_handed_nothing_for_a_heartbeat_when_there_is_nothing(log: Log) -> None:
    """A client behind a proxy would be cut off for its silence."""
    async with asyncio.timeout(5):
        assert await open_reader(log, 0, deltas=True).next(0.01) == b""


async def test_a_whole_message_that_was_held_back_comes_when_it_is_due(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last words of a pause would be shown only with the next ones, or at a heartbeat (B43)."""
    monkeypatch.setattr(limits, "WHOLE_MESSAGE_SECONDS", 0.05)
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=False)
    await reader.next(0)
    log.delta("m1", 0, "one", "text")
    await read(reader, 1)
    log.delta("m1", 0, " two")
    log._flush()
    assert await reader.next(0.0) == b""  # not yet
    async with asyncio.timeout(5):
        (event,) = await read(reader, 1)
    assert body(event)["parts"][0]["data"]["text"] == "one two"
    assert await reader.next(0.1) == b""  # and not again


async def test_a_message_that_only_began_is_not_sent_twice(log: Log) -> None:
    """Every answer would begin with an empty message sent two times."""
    reader = open_reader(log, 0, deltas=False)
    await reader.next(0)
    await log.durable(log.append([message_fact()]))
    assert [event["seq"] for event in decode(await reader.next(0))] == [1]
    assert await reader.next(0.05) == b""


@pytest.mark.parametrize("fitting", [1, 2, 3])
async def test_whole_messages_come_as_many_at_once_as_fit_one_write(
    log: Log, monkeypatch: pytest.MonkeyPatch, fitting: int
) -> None:
    """Each of many readers that do not read would hold all that is being written (I14)."""
    await log.durable(log.append([message_fact(f"m{index}", index=index) for index in range(3)]))
    for index in range(3):
        log.delta(f"m{index}", 0, "words", "text")
    log._flush()
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", fitting * len(log.live["m0"].encoded()))
    reader = open_reader(log, log.published, deltas=True)
    found = []
    while sum(map(len, found)) < 3:
        found.append([body(event)["id"] for event in decode(await reader.next(0))])
    expected = {1: [["m0"], ["m1"], ["m2"]], 2: [["m0", "m1"], ["m2"]], 3: [["m0", "m1", "m2"]]}
    assert found == expected[fitting]
