"""A search over a workspace: titles and messages together, for as long as a person would wait."""

import asyncio
from pathlib import Path

import pytest
from cast import Cast, Stage
from engine_world import BY, EngineWorld

from windlass import limits
from windlass.engine.searching import search
from windlass.engine.workspace import Workspace
from windlass.journal import view
from windlass.wire.http import Prompt


async def _root(stage: Stage) -> None:
    await stage.say("The anchor holds.")


async def talked(world: EngineWorld, *titles: str) -> Workspace:
    """A workspace with a session of each title, in each of which an anchor was spoken of once."""
    workspace = await world.open()
    for title in titles:
        session = await workspace.create_session(title, BY)
        await workspace.prompt(Prompt(session.id, "root"), BY)
        await world.idle(workspace)
    return workspace


async def test_titles_come_before_messages(tmp_path: Path) -> None:
    """Whoever looks for a conversation by its name would have to scroll past everything that was said."""
    async with EngineWorld(tmp_path, Cast(root=_root)) as world:
        workspace = await talked(world, "Sails", "The Anchor")
        hits = await search(workspace, "ANCHOR", 10)
    assert [(hit.session_title, hit.role, bool(hit.message_id)) for hit in hits] == [
        ("The Anchor", "", False),
        ("The Anchor", "assistant", True),
        ("Sails", "assistant", True),
    ]
    assert hits[1].excerpt == "The anchor holds."


async def test_titles_leave_room_for_messages(tmp_path: Path) -> None:
    """Ten sessions of one name would hide what was said."""
    async with EngineWorld(tmp_path, Cast(root=_root)) as world:
        workspace = await talked(world, "Anchor", "Anchor", "Anchor")
        hits = await search(workspace, "anchor", 4)
    assert [bool(hit.message_id) for hit in hits] == [False, False, True, True]


async def test_a_search_goes_on_over_many_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest messages would ever be found."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_ROWS", 1)
    async with EngineWorld(tmp_path, Cast(root=_root)) as world:
        workspace = await talked(world, "a1", "b2", "c3")
        hits = await search(workspace, "anchor", 10)
    assert [hit.session_title for hit in hits] == ["c3", "b2", "a1"]


@pytest.mark.parametrize("bound", ["ROWS", "BYTES", "SECONDS"])
async def test_a_search_ends_when_it_has_looked_at_enough(
    bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that is nowhere would be looked for as long as there are conversations (A38)."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_ROWS", 1)
    monkeypatch.setattr(limits, f"CONVERSATION_SEARCH_{bound}", 0)
    async with EngineWorld(tmp_path, Cast(root=_root)) as world:
        workspace = await talked(world, "a1", "b2")
        hits = await search(workspace, "anchor", 10)
    assert [hit.session_title for hit in hits] == ["b2"]


async def test_others_read_while_a_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search would hold up everyone who opens a conversation (I14)."""
    monkeypatch.setattr(limits, "CONVERSATION_SLICE_ROWS", 1)
    async with EngineWorld(tmp_path, Cast(root=_root)) as world:
        workspace = await talked(world, *(f"s{number}" for number in range(5)))
        searches = [asyncio.create_task(search(workspace, "no such word", 10)) for _ in range(4)]
        await asyncio.sleep(0)
        await workspace.read(view.workspaces)
        assert not any(task.done() for task in searches)
        assert await asyncio.gather(*searches) == [[], [], [], []]
