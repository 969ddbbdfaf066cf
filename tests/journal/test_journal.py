"""One writer for all logs: what is staged together is committed together, and who waits is told."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.journal.conftest import OpenJournal, change, new_log, rows
from tests.journal.facts import message_fact, session_fact
from windlass import limits
from windlass.clock import Clock
from windlass.errors import Unavailable
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.records import Checkpoint, NewWorkspace, Record, Trim
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import Done, ThreadWriter


class HeldWriter(ThreadWriter):
    """Commits as ever; while it is holding, the loop is not told of it."""

    is_holding = False

    def __init__(self, backend: SqliteBackend) -> None:
        super().__init__(backend)
        self.held = asyncio.Event()
        self.release: Callable[[], None] = lambda: None

    def submit(self, records: Sequence[Record], done: Done) -> None:
        super().submit(records, partial(self._committed, done))

    def _committed(self, done: Done, error: BaseException | None) -> None:
        if not self.is_holding:
            done(error)
            return
        self.release = partial(done, error)
        self.held.set()


def workspace(number: int) -> NewWorkspace:
    return NewWorkspace(f"w{number}", f"/{number}", f"e{number}", 1.0)


async def test_what_is_decided_in_one_turn_is_one_commit(journal: Journal) -> None:
    """Each decision would wait for a disk of its own."""
    for number in range(5):
        journal.stage([workspace(number)])
    assert (journal.statistics().staged_records, journal.statistics().commits) == (5, 0)
    await journal.settled()
    assert (journal.statistics().staged_records, journal.statistics().commits) == (0, 1)
    assert not journal.statistics().poisoned


async def test_a_commit_is_bounded_but_never_splits_what_was_staged_together(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit of a burst would take seconds, or a crash would leave half of a decision."""
    monkeypatch.setattr(limits, "COMMIT_FACTS", 3)
    journal.stage([workspace(1), workspace(2)])
    journal.stage([workspace(3), workspace(4)])
    journal.stage([workspace(5)])
    await journal.settled()
    assert journal.statistics().commits == 2  # four, because two and two belong together, then one
    journal.stage([workspace(number) for number in range(10, 14)])
    await journal.settled()
    assert journal.statistics().commits == 3
    for number in range(20, 24):
        journal.stage([workspace(number)])
    await journal.settled()
    assert journal.statistics().commits == 5  # three, which is the bound, then one


async def test_settled_waits_for_what_was_staged_until_now_and_not_for_more(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller would be answered too early, or never while others go on writing."""
    monkeypatch.setattr(limits, "COMMIT_FACTS", 1)
    journal.stage([workspace(1)])
    first = asyncio.create_task(journal.settled())
    await asyncio.sleep(0)
    journal.stage([workspace(2)])
    journal.stage([workspace(3)])
    await first
    assert 1 <= journal.statistics().commits < 3
    await journal.settled()
    assert len(await journal.read(view.workspaces)) == 3


async def test_a_caller_that_hangs_up_while_it_waits_takes_nobody_along(journal: Journal) -> None:
    """Everyone behind it would wait for ever."""
    journal.stage([workspace(1)])
    waiting = [asyncio.create_task(journal.settled()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting[1:])
    assert journal.statistics().staged_records == 0


async def test_new_work_is_refused_while_the_disk_is_too_far_behind(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow disk would fill the memory until the server is killed, with everything that was not written yet."""
    log.append([session_fact()])
    size = journal.statistics().staged_bytes
    for bound, is_refused in ((size, False), (size - 1, True)):
        monkeypatch.setattr(limits, "STAGED_BYTES", bound)
        if is_refused:
            with pytest.raises(Unavailable, match="cannot keep up"):
                journal.check_room()
        else:
            journal.check_room()
    await journal.settled()
    journal.check_room()


async def test_what_can_wait_does_once_the_disk_is_half_as_far_behind(
    log: Log, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints would be the straw that makes the server refuse work."""
    log.append([session_fact()])
    size = journal.statistics().staged_bytes
    found = []
    for bound in (2 * size, 2 * size - 2):
        monkeypatch.setattr(limits, "STAGED_BYTES", bound)
        found.append(journal.is_behind)
    assert found == [False, True]
    await journal.settled()


async def test_the_text_of_checkpoints_counts_as_waiting_for_the_disk(journal: Journal) -> None:
    """Long answers on a slow disk would fill the memory uncounted."""
    journal.stage([Checkpoint("w1", "m1", "s1", b"x" * 1000), workspace(1), Trim("w1", 1)])
    assert journal.statistics().staged_bytes == 1000
    await journal.settled()
    assert journal.statistics().staged_bytes == 0


async def test_one_path_is_one_workspace_also_after_a_restart(open_journal: OpenJournal) -> None:
    """A project would lose its conversations each time it is opened (I18)."""
    first = open_journal()
    found = [await first.workspace_for(path) for path in ("/a", "/b", "/a")]
    assert found[0] == found[2] != found[1]
    assert found[0].epoch != found[1].epoch
    await first.close()
    first.closed_by_test = True  # type: ignore[attr-defined]
    assert await open_journal().workspace_for("/a") == found[0]


async def test_closing_writes_what_is_staged(open_journal: OpenJournal, tmp_path: Path) -> None:
    """The last words before a stop would be lost."""
    journal = open_journal()
    journal.stage([workspace(1)])
    await journal.close()
    journal.closed_by_test = True  # type: ignore[attr-defined]
    assert rows(tmp_path / "journal.db", "SELECT id FROM workspaces") == [("w1",)]


async def test_a_log_that_is_opened_while_its_last_facts_are_on_their_way_goes_on_after_them(journal: Journal) -> None:
    """Two facts would have one number, and the second could not be stored (I12)."""
    log = await new_log(journal)
    log.append([session_fact(), session_fact()])
    journal.close_log(log)
    again, opening = await journal.open_log(log.workspace_id)
    assert (again.head, again.published, opening.workspace.head) == (2, 2, 2)
    await again.durable(again.append([session_fact()]))
    assert (again.published, log.published) == (3, 2)


@pytest.mark.parametrize("is_on_its_way", [False, True])
async def test_a_closed_log_is_forgotten_once_its_last_fact_is_published(journal: Journal, is_on_its_way: bool) -> None:
    """A server of months would keep every workspace it ever had open in memory."""
    log = await new_log(journal)
    head = log.append([session_fact()])
    if not is_on_its_way:
        await log.durable(head)
    journal.close_log(log)
    await journal.settled()
    gone = weakref.ref(log)
    del log
    gc.collect()
    assert gone() is None


async def test_a_read_is_answered_when_streams_show_what_it_saw(journal: Journal) -> None:
    """A client would read of something that its own stream has not told it yet (B19)."""
    log = await new_log(journal)
    log.append([message_fact(done=True)])
    await journal.settled()
    row = await journal.read_published(log, view.message, log.workspace_id, "m1")
    assert row is not None and log.published == log.head == 1


async def test_a_read_that_saw_more_than_streams_have_shown_waits_for_them(tmp_path: Path) -> None:
    """A client would read of something that its own stream tells it only later (B19)."""
    writer = HeldWriter(SqliteBackend(tmp_path / "journal.db"))
    journal = Journal(writer, Clock(), lambda reason: None)
    log = await new_log(journal)
    writer.is_holding = True
    log.append([session_fact()])
    await writer.held.wait()
    reading = asyncio.create_task(journal.read_published(log, view.session, log.workspace_id, "s1"))
    for _ in range(10):
        assert len(await journal.read(view.facts, log.workspace_id, 0, 9)) == 1  # it is on disk, and can be read
    assert not reading.done() and log.published == 0
    writer.release()
    assert await reading is not None
    await journal.close()


async def test_a_read_through_a_log_that_was_closed_and_opened_again_is_answered(journal: Journal) -> None:
    """A request that raced with the close of its workspace would hang for ever."""
    log = await new_log(journal)
    journal.close_log(log)
    again, _ = await journal.open_log(log.workspace_id)
    await again.durable(again.append([session_fact()]))
    async with asyncio.timeout(5):
        assert await journal.read_published(log, view.session, log.workspace_id, "s1") is not None


async def test_trimming_says_how_many_floors_it_moved_and_goes_on_until_done(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slice would be given up an hour, and the log would grow faster than it is trimmed (B45)."""
    monkeypatch.setattr(limits, "TRIM_FACTS", 2)
    logs = [await new_log(journal, path) for path in ("/a", "/b")]
    for log in logs:
        for _ in range(5):
            await log.durable(log.append([session_fact()]))
    assert await journal.trim(retention_days=-1, retention_bytes=10**9) == 8
    assert [log.floor for log in logs] == [4, 4]
    assert await journal.trim(retention_days=-1, retention_bytes=10**9) == 0


async def test_trimming_goes_by_days(journal: Journal, tmp_path: Path) -> None:
    """Clients would be reset that were promised days, or the log kept for ever (B45)."""
    log = await new_log(journal)
    for _ in range(3):
        await log.durable(log.append([session_fact()]))
    await journal.settled()
    an_hour_more = "UPDATE facts SET time = time - 10000 * 86400 - 3600 WHERE seq < 3"
    change(tmp_path / "journal.db", an_hour_more)
    assert await journal.trim(retention_days=10_001, retention_bytes=10**9) == 0
    assert await journal.trim(retention_days=10_000, retention_bytes=10**9) == 1


async def test_a_floor_is_never_told_lower_than_it_is(journal: Journal) -> None:
    """A cursor would be honoured although facts after it are gone (B41)."""
    log = await new_log(journal)
    await log.durable(log.append([session_fact() for _ in range(5)]))
    for floor in (4, 2):
        journal.stage([Trim(log.workspace_id, floor)])
        await journal.settled()
    assert log.floor == 4
