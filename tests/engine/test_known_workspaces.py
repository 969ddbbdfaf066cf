"""Which workspaces a server remembers after they were closed."""

from pathlib import Path

import pytest
from engine_world import BY, EngineWorld, nobody_runs

from windlass.engine.workspace import Workspace


def directories(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return tmp_path / "a", tmp_path / "b"


async def used(world: EngineWorld, directory: Path, client_id: str) -> Workspace:
    workspace = await world.registry.create(str(directory), client_id, BY)
    await workspace.create_session("x", BY)
    return workspace


async def test_the_workspace_used_last_comes_first(tmp_path: Path) -> None:
    """People would look for today's project among all they ever had."""
    a, b = directories(tmp_path)
    async with EngineWorld(tmp_path, nobody_runs) as world:
        first = await used(world, a, "one")
        second = await used(world, b, "two")
        await first.create_session("later", BY)
        world.registry.retire("two")
        known = await world.registry.known()
        assert second.closed
    assert [row.path for row in known] == [str(a), str(b)]
    assert known[0].last > known[1].last > 0


async def test_a_workspace_whose_directory_is_gone_is_not_listed(tmp_path: Path) -> None:
    """People would be offered what cannot be opened."""
    a, b = directories(tmp_path)
    async with EngineWorld(tmp_path, nobody_runs) as world:
        await used(world, a, "one")
        await used(world, b, "two")
        a.rmdir()
        known = await world.registry.known()
    assert [row.path for row in known] == [str(b)]


async def test_a_workspace_in_which_nothing_happened_says_so(tmp_path: Path) -> None:
    """It would look as if something had just been done there."""
    async with EngineWorld(tmp_path, nobody_runs) as world:
        await world.open()
        (row,) = await world.registry.known()
    assert row.last == 0.0


async def test_a_directory_below_the_home_is_opened_as_people_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a page no shell replaces the tilde, and who types it would be told that there is no such directory."""
    a, _ = directories(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with EngineWorld(tmp_path, nobody_runs) as world:
        assert (await world.registry.create("~/a", "one", BY)).path == str(a)
