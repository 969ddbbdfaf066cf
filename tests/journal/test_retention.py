"""The log is bounded; what is trimmed is said; the view survives it."""

from tests.journal.conftest import new_log
from tests.journal.facts import body, decode, message_fact, read, session_fact
from tests.journal.readers import open_reader
from windlass.journal import view
from windlass.journal.journal import Journal


async def test_trimming_moves_the_floor_by_whole_commits(journal: Journal) -> None:
    """A client could be resumed in the middle of what happened at once."""
    log = await new_log(journal)
    for number in range(5):
        await log.durable(log.append([session_fact(title=str(number)), session_fact(title="again")]))
    await journal.trim(retention_days=30, retention_bytes=300)
    assert log.floor > 0
    assert log.floor % 2 == 0


async def test_a_reader_below_the_floor_is_told_so(journal: Journal) -> None:
    """It would take a stretch with a gap for the whole story (B41 I13)."""
    log = await new_log(journal)
    for number in range(10):
        await log.durable(log.append([session_fact(title=str(number))]))
    reader = open_reader(log, 2, deltas=False)
    log.tail.clear(log.published)
    await journal.trim(retention_days=0, retention_bytes=10**9)
    (event,) = decode(await reader.next(0))
    assert event["type"] == "reset"
    assert body(event)["head"] == log.published


async def test_the_state_is_whole_after_trimming(journal: Journal) -> None:
    """Old conversations would vanish with the stream's memory of them (B45)."""
    log = await new_log(journal)
    for number in range(10):
        await log.durable(log.append([message_fact(f"m{number}", "kept", done=True, index=number)]))
    await journal.trim(retention_days=0, retention_bytes=0)
    rows = await journal.read(view.messages, log.workspace_id, "s1")
    assert rows is not None and len(rows) == 10


async def test_facts_after_the_floor_can_still_be_read(journal: Journal) -> None:
    """A client that kept up would be reset for nothing."""
    log = await new_log(journal)
    for number in range(10):
        await log.durable(log.append([session_fact(title=str(number))]))
    await journal.trim(retention_days=0, retention_bytes=10**9)
    log.tail.clear(log.published)
    events = await read(open_reader(log, log.floor, deltas=False), log.published - log.floor)
    assert [event["seq"] for event in events] == list(range(log.floor + 1, log.published + 1))
