"""A disk that refuses while a session is being deleted: its caller is told, and the server can leave."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from windlass.clock import Clock
from windlass.config import Config
from windlass.engine.context import Context, Graces
from windlass.engine.registry import Registry
from windlass.errors import JournalPoisoned
from windlass.ids import new_id
from windlass.journal.journal import Journal
from windlass.journal.records import Record
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.http import Prompt
from windlass.wire.permissions import By

BY = By("tester")


class FullDisk(SqliteBackend):
    full = False

    def commit(self, records: Sequence[Record]) -> None:
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        super().commit(records)


class SlowToStop:
    """Told to stop, it stops only once the disk has refused: as a command does while its processes are killed."""

    def __init__(self, refused: asyncio.Event) -> None:
        self.started = asyncio.Event()
        self._refused = refused

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await self._refused.wait()
        return RunOutcome("completed")


async def test_a_delete_on_a_poisoned_journal_is_refused_and_the_server_can_leave(tmp_path: Path) -> None:
    """I19: the request would never be answered, and the process that should exit saying why would stay for ever."""
    (tmp_path / "data").mkdir()
    (tmp_path / "project").mkdir()
    refused = asyncio.Event()
    executor = SlowToStop(refused)
    backend = FullDisk(tmp_path / "data" / "journal.db")
    journal = Journal(ThreadWriter(backend), Clock(), lambda reason: refused.set())
    context = Context(journal, Clock(), Config(model="x/y"), lambda *_: executor, Graces(30, 10), new_id)
    registry = Registry(context, str(tmp_path / "data"))
    workspace = await registry.create(str(tmp_path / "project"), "client", BY)
    session = await workspace.create_session("", BY)
    await workspace.prompt(Prompt(session_id=session.id, prompt="go"), BY)
    await executor.started.wait()
    backend.full = True
    deleting = asyncio.create_task(workspace.delete_session(session.id, BY))
    async with asyncio.timeout(5):
        with pytest.raises(JournalPoisoned):
            await deleting
        await registry.drain(0.0)
    await journal.close()
