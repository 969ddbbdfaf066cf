"""Answers that rest on facts which are not on disk yet: they wait for them, also where nothing was accepted (I12)."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from cast import Cast, forever
from engine_world import BY, EngineWorld
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler

from windlass import limits
from windlass.errors import NotFound, TooMany
from windlass.journal.records import Record
from windlass.journal.sqlite import SqliteBackend
from windlass.server.mcp import mcp_states
from windlass.server.permissions import get_skip
from windlass.wire.http import Prompt

_STEPS = 20  # of the event loop: more than any answer takes that waits for nothing


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Commits only while it is set."""
    is_free = threading.Event()
    is_free.set()
    commit = SqliteBackend.commit

    def slow(self: SqliteBackend, records: Sequence[Record]) -> None:
        is_free.wait()
        commit(self, records)

    monkeypatch.setattr(SqliteBackend, "commit", slow)
    yield is_free
    is_free.set()


async def steps() -> None:
    for _ in range(_STEPS):
        await asyncio.sleep(0)


@pytest.mark.parametrize("errand", ["shell", "summarize"])
async def test_a_refused_errand_waits_for_what_fills_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: threading.Event, errand: str
) -> None:
    """I12: someone would be told of a full queue that a crash then empties."""
    monkeypatch.setattr(limits, "QUEUE_PER_SESSION", 1)
    async with EngineWorld(tmp_path, Cast(root=forever)) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        disk.clear()
        prompted = asyncio.create_task(workspace.prompt(Prompt(session.id, "root"), BY))
        await steps()
        errands = workspace.errands
        asking = errands.shell(session.id, "true", 0, BY) if errand == "shell" else errands.summarize(session.id, BY)
        asked = asyncio.create_task(asking)
        await steps()
        was_told = asked.done()
        disk.set()
        with pytest.raises(TooMany):
            await asked
        assert not was_told
        await prompted


async def test_a_session_that_is_being_deleted_is_not_there_only_when_that_is_on_disk(
    tmp_path: Path, disk: threading.Event
) -> None:
    """I12: someone would be told that it is gone, and find it again after a crash."""
    async with EngineWorld(tmp_path, Cast()) as world:
        workspace = await world.open()
        session = await workspace.create_session("", BY)
        disk.clear()
        deleting = asyncio.create_task(workspace.delete_session(session.id, BY))
        await steps()
        asked = asyncio.create_task(workspace.errands.summarize(session.id, BY))
        await steps()
        was_told = asked.done()
        disk.set()
        with pytest.raises(NotFound):
            await asked
        assert not was_told
        await deleting


@pytest.mark.parametrize("route", [get_skip, mcp_states])
async def test_what_is_read_from_memory_waits_for_its_facts(
    tmp_path: Path, disk: threading.Event, route: HTTPRouteHandler
) -> None:
    """I12: one client would know of a change that no stream has told of, and that a crash takes back."""
    async with EngineWorld(tmp_path, Cast()) as world:
        workspace = await world.open()
        disk.clear()
        changed = asyncio.create_task(workspace.set_skip(True, BY))
        await steps()
        state = State({"services": SimpleNamespace(registry=world.registry)})
        read = asyncio.create_task(route.fn(state, workspace.id))
        await steps()
        was_told = read.done()
        disk.set()
        await asyncio.gather(read, changed)
        assert not was_told
