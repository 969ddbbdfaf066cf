"""What a log knows by heart: runs and questions that are not over, as they were published, for whoever attaches."""

import asyncio

import msgspec
import pytest

from tests.journal.conftest import OpenJournal, new_log
from tests.journal.facts import (
    BY,
    answer_fact,
    body,
    decode,
    message_fact,
    question_fact,
    read,
    run_fact,
    session_fact,
)
from tests.journal.readers import open_reader
from windlass.errors import Conflict
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.messages import Message
from windlass.wire.permissions import PermissionNotification


def states(log: Log) -> dict[str, str]:
    return {id: msgspec.json.decode(raw)["state"] for id, raw in log.runs.items()}


async def test_runs_are_known_from_their_commit_until_they_are_over(log: Log) -> None:
    """Whoever attaches would be greeted with runs that ended, or without those that run (B11)."""
    head = log.append([run_fact("r1", "queued"), run_fact("r2", "running", order=2)])
    assert states(log) == {}
    await log.durable(head)
    assert states(log) == {"r1": "queued", "r2": "running"}
    await log.durable(log.append([run_fact("r1", "running"), run_fact("r2", "completed", order=2)]))
    assert states(log) == {"r1": "running"}


async def test_questions_are_known_until_they_are_answered(log: Log) -> None:
    """Whoever attaches would be asked what was answered, or not what waits (B24)."""
    asked = PermissionNotification("call-q1", "q1", "asked", False, False, "s1", BY)
    told = Fact("permission_notification", "created", asked, BY, "s1", "r1")
    await log.durable(log.append([question_fact("q1"), question_fact("q2"), told]))
    assert [msgspec.json.decode(raw)["id"] for raw in log.permissions.values()] == ["q1", "q2"]
    await log.durable(log.append([answer_fact("q1"), answer_fact("q9")]))
    assert list(log.permissions) == ["q2"]


async def test_a_log_that_is_opened_again_knows_what_is_not_over(open_journal: OpenJournal) -> None:
    """The first client after a restart would be told that nothing runs and nobody is asked (I1 B24)."""
    first = open_journal()
    log = await new_log(first)
    facts = [run_fact("r1", "completed"), run_fact("r2", "waiting", order=2), question_fact("q1")]
    await log.durable(log.append(facts))
    await first.close()
    first.closed_by_test = True  # type: ignore[attr-defined]
    again = await new_log(open_journal())
    assert states(again) == {"r2": "waiting"}
    assert {id: msgspec.json.decode(raw)["id"] for id, raw in again.permissions.items()} == {"q1": "q1"}
    assert (again.published, again.floor, again.tail.covers(3), again.tail.covers(2)) == (3, 0, True, False)


async def test_a_message_is_live_while_an_assistant_writes_it(log: Log) -> None:
    """Text would be added to a message that is over, or that a person wrote."""
    facts = [message_fact("m1"), message_fact("m2", "asked", role="user"), message_fact("m3", "over", done=True)]
    head = log.append(facts)
    assert log.live == {}
    await log.durable(head)
    assert list(log.live) == ["m1"]
    for id in ("m2", "m3", "m9"):
        with pytest.raises(KeyError):
            log.delta(id, 0, "words", "text")
    assert [log.staged_message(id) is None for id in ("m1", "m3")] == [False, True]
    await log.durable(log.append([message_fact("m1", "over", done=True)]))
    assert (log.live, log.staged_message("m1")) == ({}, None)


async def test_a_message_that_grows_without_end_is_refused_more(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that never stops would fill the memory before anyone has seen a word."""
    monkeypatch.setattr("windlass.limits.MESSAGE_BYTES", 6)
    log.append([message_fact("m1", "ab")])
    log.delta("m1", 0, "cd")
    log.delta("m1", 0, "ef")
    with pytest.raises(ValueError, match="longer than"):
        log.delta("m1", 0, "g")


async def test_nothing_can_be_appended_to_a_closed_log_but_its_head_can_be_asked_for(journal: Journal) -> None:
    """Its facts would take numbers that another log of the same workspace gives out (I12)."""
    log = await new_log(journal)
    await log.durable(log.append([session_fact()]))
    journal.close_log(log)
    assert log.append([]) == 1
    with pytest.raises(Conflict, match="Open it again"):
        log.append([session_fact()])


async def test_a_note_is_told_to_whoever_listens_and_is_no_fact(log: Log) -> None:
    """Presence would be in the log for ever, or nobody would see it (B29)."""
    reader = open_reader(log, 0, deltas=False)
    await reader.next(0)
    waiting = asyncio.create_task(reader.next(5.0))
    await asyncio.sleep(0)
    log.note("presence", {"n": 1})
    (event,) = decode(await waiting)
    assert (event["type"], event["seq"], event["payload"]["type"], body(event)) == ("presence", 0, "updated", {"n": 1})
    assert (log.head, decode(await open_reader(log, 0, deltas=False).next(0))) == (0, [])


async def test_whoever_waits_is_told_in_the_order_of_the_heads(log: Log) -> None:
    """A late request for an old head would be answered behind everyone, or never."""
    heads = [log.append([session_fact()]) for _ in range(3)]
    done: list[int] = []

    async def wait(head: int) -> None:
        await log.durable(head)
        done.append(head)

    waiting = [asyncio.create_task(wait(heads[index])) for index in (2, 0, 1)]
    await asyncio.gather(*waiting)
    assert done == [1, 2, 3]


async def test_a_delta_says_which_part_it_starts_and_only_then(log: Log) -> None:
    """A client could not tell thinking from the answer, or would begin the part again with each piece (B43)."""
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "because", "reasoning")
    log.delta("m1", 1, '{"a"', "tool_call", "call-1", "edit")
    events = await read(reader, 2)
    assert [(event["type"], event["payload"]["type"]) for event in events] == [("message_delta", "updated")] * 2
    first, second = (body(event) for event in events)
    log.delta("m1", 1, ":1}")
    third = body((await read(reader, 1))[0])
    assert first == {
        "message_id": "m1",
        "session_id": "s1",
        "part": 0,
        "field": "thinking",
        "at": 0,
        "text": "because",
        "type": "reasoning",
    }
    assert {**second, "name": ""} == {**second, "type": "tool_call", "id": "call-1", "field": "input", "name": ""}
    assert second["name"] == "edit"
    assert third == {"message_id": "m1", "session_id": "s1", "part": 1, "field": "input", "at": 4, "text": ":1}"}


async def test_text_that_waits_for_a_checkpoint_is_not_kept_once_its_message_is_over(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart would put an old half of the text in the place of the whole (B10)."""
    monkeypatch.setattr("windlass.limits.CHECKPOINT_SECONDS", 0.0)
    await log.durable(log.append([message_fact()]))
    reader = open_reader(log, log.published, deltas=True)
    await reader.next(0)
    log.delta("m1", 0, "half", "text")
    log._flush()
    await log.durable(log.append([message_fact("m1", "half and whole", done=True)]))
    await asyncio.sleep(0.01)  # time for the checkpoint that must not come
    await journal.settled()
    ((_, _, kept),) = await journal.read(view.run_messages, log.workspace_id, "s1", 1)
    assert b"half and whole" in kept


async def test_in_a_flood_text_is_shown_at_its_own_pace(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token would be an event of its own for every reader."""
    # Both: one event alone asks for a millisecond, which is over before a busy machine comes to the first token.
    monkeypatch.setattr("windlass.limits.DELTA_FLUSH_SECONDS_PER_EVENT", 3600.0)
    monkeypatch.setattr("windlass.limits.DELTA_FLUSH_SECONDS", 3600.0)
    await log.durable(log.append([message_fact()]))
    before = log.tail.end
    for _ in range(3):
        log.delta("m1", 0, "token ", "text")
        await asyncio.sleep(0)
    assert log.tail.end == before
    log.close()


async def test_one_checkpoint_is_on_its_way_however_much_is_said(log: Log) -> None:
    """Every token would have a timer and a write of its own."""
    await log.durable(log.append([message_fact()]))
    timers = set()
    for _ in range(3):
        log.delta("m1", 0, "token ", "text")
        log._flush()
        timers.add(log._checkpoint_handle)
    assert len(timers) == 1


async def test_a_checkpoint_that_had_to_wait_for_a_slow_disk_is_made_up_for(
    three: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a minute of a slow disk a crash would lose the whole answer (B10)."""
    with monkeypatch.context() as slow:
        slow.setattr("windlass.limits.STAGED_BYTES", -2)
        slow.setattr("windlass.limits.CHECKPOINT_SECONDS", 0.0)
        three._checkpoint()
        assert await kept_texts(three, journal) == ["", "", ""]
    async with asyncio.timeout(5):
        while "" in await kept_texts(three, journal):
            pass


@pytest.fixture
async def three(log: Log, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A log with text in three messages, whose checkpoints are made one at a time, when the test says so."""
    monkeypatch.setattr("windlass.limits.CHECKPOINT_SECONDS", 3600.0)
    monkeypatch.setattr("windlass.limits.CHECKPOINT_SLICE_SECONDS", -1.0)
    ids = ("m1", "m2", "m3")
    await log.durable(log.append([message_fact(id, index=index) for index, id in enumerate(ids)]))
    for id in ids:
        log.delta(id, 0, f"so far {id}", "text")
    log._flush()
    assert log._checkpoint_handle is not None
    log._checkpoint_handle.cancel()
    return log


async def kept_texts(log: Log, journal: Journal) -> list[str]:
    await journal.settled()
    rows = await journal.read(view.run_messages, log.workspace_id, "s1", 1)
    return [msgspec.json.decode(body, type=Message).text for _, _, body in rows]


async def test_every_message_has_its_checkpoint_however_many_slices_it_takes(three: Log, journal: Journal) -> None:
    """A crash would lose all but the first of many answers that were being written (B10)."""
    three._checkpoint()
    async with asyncio.timeout(5):
        while await kept_texts(three, journal) != ["so far m1", "so far m2", "so far m3"]:
            pass


async def test_text_that_came_between_two_slices_has_its_checkpoint_too(
    three: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last words before a long pause would be lost in a crash (B10)."""
    three._checkpoint()  # the first slice: the last message
    three.delta("m3", 0, " and more")
    three._flush()
    monkeypatch.setattr("windlass.limits.CHECKPOINT_SECONDS", 0.0)
    async with asyncio.timeout(5):
        while (await kept_texts(three, journal))[2] != "so far m3 and more":
            pass


async def test_a_reader_that_waited_in_vain_leaves_nothing_behind(log: Log) -> None:
    """An idle workspace would remember every heartbeat of every client."""
    reader = open_reader(log, 0, deltas=True)
    for _ in range(3):
        assert await reader.next(0.0) == b""
    assert len(log._wakers) == 0
