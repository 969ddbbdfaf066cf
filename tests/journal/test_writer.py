"""The thread that writes: batches in order, errors told, and gone when it is closed."""

import asyncio
import os
import sqlite3
import threading
from pathlib import Path

from windlass.journal import view
from windlass.journal.records import NewWorkspace, Record
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter


def workspace(number: int) -> list[Record]:
    return [NewWorkspace(f"w{number}", f"/{number}", f"e{number}", 1.0)]


async def commit(writer: ThreadWriter, records: list[Record]) -> BaseException | None:
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    writer.submit(records, done.set_result)
    return await done


async def test_a_batch_is_on_disk_when_its_end_is_told_on_the_loop(tmp_path: Path) -> None:
    """Something would be acknowledged that is not durable, or told in a thread that must not touch it (I1)."""
    writer = ThreadWriter(SqliteBackend(tmp_path / "journal.db"))
    told: asyncio.Future[threading.Thread] = asyncio.get_running_loop().create_future()
    writer.submit(workspace(1), lambda error: told.set_result(threading.current_thread()))
    assert await told is threading.current_thread()
    assert len(await writer.read(view.workspaces)) == 1
    await writer.close()


async def test_a_batch_that_fails_is_told_and_the_thread_goes_on(tmp_path: Path) -> None:
    """Whoever waits would wait for ever (I1)."""
    writer = ThreadWriter(SqliteBackend(tmp_path / "journal.db"))
    assert await commit(writer, workspace(1)) is None
    assert isinstance(await commit(writer, workspace(1)), sqlite3.IntegrityError)
    assert await commit(writer, workspace(2)) is None
    await writer.close()


async def test_closing_writes_everything_and_leaves_no_thread_and_no_file(tmp_path: Path) -> None:
    """A server that stops would hang, or lose what it had taken on."""
    before = set(threading.enumerate())
    writer = ThreadWriter(SqliteBackend(tmp_path / "journal.db"))
    ends: list[BaseException | None] = []
    for number in range(3):
        writer.submit(workspace(number), ends.append)
    await writer.read(view.workspaces)
    await writer.close()
    left = {thread for thread in threading.enumerate() if thread.name.startswith("journal")} - before
    assert (ends, left) == ([None, None, None], set())
    assert os.listdir(tmp_path) == ["journal.db"]


async def test_a_read_does_not_hold_up_another(tmp_path: Path) -> None:
    """One slow look at a long history would stop everyone who wants to read anything."""
    writer = ThreadWriter(SqliteBackend(tmp_path / "journal.db"))
    meeting = threading.Barrier(2)
    reads = [asyncio.create_task(writer.read(lambda connection: meeting.wait(10))) for _ in range(2)]
    assert sorted([await read for read in reads]) == [0, 1]
    await writer.close()
