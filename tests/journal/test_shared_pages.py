"""Readers that are behind at the same place read the log once, and never get what was deleted."""

import asyncio

import pytest

from tests.journal.facts import body, message_fact, read, session_fact
from windlass import limits
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.reader import Reader


async def behind(log: Log, facts: int = 5) -> None:
    """Facts that the tail no longer holds."""
    await log.durable(log.append([session_fact(f"s{number}") for number in range(facts)]))
    log.tail.clear(log.published)


async def test_readers_at_the_same_place_share_one_page(log: Log) -> None:
    """When a server is back, a thousand clients would each read and hold the same facts."""
    await behind(log)
    first, second = await asyncio.gather(log.page(0), log.page(0))
    assert first[0] is second[0]
    assert first[1] == log.published


async def test_a_reader_that_hangs_up_does_not_take_the_page_from_the_others(log: Log) -> None:
    """One phone that loses its network would end the streams of everyone who was reading the same page."""
    await behind(log)
    leaving, staying = asyncio.ensure_future(log.page(0)), asyncio.ensure_future(log.page(0))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying)[1] == log.published
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_a_page_is_forgotten_when_a_session_is_deleted(log: Log) -> None:
    """Deleted words would still be handed to whoever asks next."""
    await behind(log)
    before = await log.page(0)
    await log.durable(log.append([session_fact("s1", change="deleted")]))
    assert (await log.page(0))[0] is not before[0]


async def test_few_pages_are_kept(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory would grow with every place anybody ever read from."""
    monkeypatch.setattr(limits, "SHARED_PAGES", 2)
    await behind(log)
    for after in range(4):
        await log.page(after)
    assert len(log._pages) == 2


async def test_a_page_of_one_huge_fact_is_not_kept(log: Log) -> None:
    """A few prompts with pictures, read again by one client, would stay in memory as long as the workspace is open."""
    await log.durable(log.append([session_fact(title="x" * 3 * limits.PAGE_BYTES)]))
    log.tail.clear(log.published)
    page, _ = await log.page(0)
    assert len(page) > 3 * limits.PAGE_BYTES
    assert not log._pages


async def test_a_page_that_could_not_be_read_is_read_again(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed read would be told to every reader that comes to this place, for ever."""
    await behind(log)

    async def unreadable(*arguments: object) -> list[object]:
        raise OSError("the disk is away for a moment")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "facts", unreadable)
        with pytest.raises(OSError):
            await log.page(0)
    assert (await log.page(0))[1] == log.published


async def test_unfinished_messages_come_in_pieces_and_go_on_without_a_gap(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that comes back to hundreds of running sessions would be handed all of their text in one write."""
    monkeypatch.setattr(limits, "STREAM_WRITE_BYTES", 1)
    names = ["m1", "m2", "m3"]
    await log.durable(log.append([message_fact(id=name) for name in names]))
    for name in names:
        log.delta(name, 0, f"{name} ", "text")
    log._flush()
    reader = Reader(log, log.published, deltas=True)
    joined = await read(reader, 1)
    for name in names:
        log.delta(name, 0, "more")
    log._flush()
    joined += await read(reader, 3)
    texts = {name: "" for name in names}
    for event in joined:
        message = body(event)
        if event["type"] == "message":
            texts[message["id"]] = message["parts"][0]["data"]["text"]
        else:
            assert message["at"] == len(texts[message["message_id"]])
            texts[message["message_id"]] += message["text"]
    assert texts == {name: f"{name} more" for name in names}
