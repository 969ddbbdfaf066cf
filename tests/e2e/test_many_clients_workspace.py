"""A workspace is a directory: whoever opens it, by whatever path, is in the same one."""

import os

import pytest
from shared_world import World, together

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_two_clients_that_open_the_same_path_are_in_the_same_workspace(world: World) -> None:
    """If it failed, two people in one directory would not see each other's sessions. B20"""
    one, other = await world.client(), await world.client()
    assert one.workspace_id == other.workspace_id


@pytest.mark.parametrize("spelling", ["{}/", "{}/.", "{}/../project", "/{}"])
async def test_another_spelling_of_the_path_is_the_same_workspace(world: World, spelling: str) -> None:
    """If it failed, a slash too many would open a second, empty workspace on the same files. B20 I18"""
    api = await world.client()
    before = api.workspace_id
    assert await api.open(spelling.format(world.directory)) == before


async def test_a_symlink_to_the_directory_is_the_same_workspace(world: World) -> None:
    """If it failed, two runs could change the same files without knowing of each other. B20 I18"""
    link = world.directory.parent / "link"
    os.symlink(world.directory, link)
    one, other = await world.client(), await world.client()
    await other.open(link)
    assert one.workspace_id == other.workspace_id


async def test_ten_clients_that_open_a_new_path_at_the_same_instant_get_one_workspace(world: World) -> None:
    """If it failed, an editor and a terminal started together would each have a workspace of their own. B20 R32"""
    clients = [await world.client() for _ in range(10)]
    fresh = world.directory / "fresh"
    fresh.mkdir()
    link = world.directory / "fresh link"
    os.symlink(fresh, link)
    ids = await together(*(client.open(path) for client, path in zip(clients, [fresh, link] * 5, strict=True)))
    assert len(set(ids)) == 1


async def test_a_session_that_one_client_made_is_there_for_the_other(world: World) -> None:
    """If it failed, one id would not mean one workspace. B20"""
    one, other = await world.client(), await world.client()
    session_id = await one.new_session("shared")
    assert [session["id"] for session in await other.ok("GET", "W/sessions")] == [session_id]
