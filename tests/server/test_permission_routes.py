"""Answers to permissions over HTTP: the first one counts, and a pattern must cover what was asked."""

import json
from typing import Any

import pytest
from door_client import DoorClient
from world import World

from windlass import limits

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def grant(
    door: DoorClient, world: World, action: str, pattern: Any = "", permission_id: str = ""
) -> tuple[int, Any]:
    """The pending request is for `touch ran.txt`."""
    path = f"/v1/workspaces/{world.ids['workspace_id']}/permissions/grant"
    id = permission_id or world.ids["permission_id"]
    body = {"permission": {"id": id}, "action": action, "pattern": pattern}
    answer = await door.send("POST", path, json.dumps(body).encode(), token=door.server.token)
    return answer.status, answer.json


async def waiting(world: World) -> list[str]:
    return [request["id"] for request in await world.api.ok("GET", "W/permissions")]


async def test_a_pattern_that_covers_the_request_decides_it(fresh_world: World, door: DoorClient) -> None:
    """Nobody could say that all of a kind is fine, and people would switch asking off (B26)."""
    assert await grant(door, fresh_world, "allow_session", "touch *") == (200, {"resolved": True})
    assert await grant(door, fresh_world, "allow_session", "nonsense") == (200, {"resolved": False})
    assert await waiting(fresh_world) == []


@pytest.mark.parametrize(
    ("action", "pattern", "status"),
    [
        ("allow_session", "rm *", 422),
        ("allow_session", "touch", 422),
        ("allow_session", "touch ran.txt; rm *", 422),
        ("allow_session", "*", 422),
        ("allow_session", "t* ran.txt", 422),
        ("allow_session", "touch ran.txt\n", 422),
        ("allow_session", " ", 422),
        ("allow_session", "touch " + "*" * limits.PATTERN_CHARACTERS, 422),
        ("allow", "touch *", 422),
        ("deny", "touch *", 422),
        ("allow_session", 7, 400),
        ("allow_session", None, 400),
        ("always", "touch *", 400),
    ],
)
async def test_a_pattern_that_does_not_is_refused_and_decides_nothing(
    world: World, door: DoorClient, action: str, pattern: Any, status: int
) -> None:
    """A slip of the keyboard would allow what nobody was shown (I10 A28)."""
    refused, body = await grant(door, world, action, pattern)
    assert (refused, await waiting(world)) == (status, [world.ids["permission_id"]])
    assert ("action" if action == "always" else "pattern") in body["message"]


async def test_a_pattern_for_a_request_that_nobody_asked_decides_nothing(world: World, door: DoorClient) -> None:
    """An id of a run, of a question or of nothing could be used to allow commands (A17)."""
    for id in (world.ids["batch_id"], world.ids["waiting_run_id"], "perm_" + "0" * 32):
        assert await grant(door, world, "allow_session", "touch *", id) == (200, {"resolved": False})
    assert await waiting(world) == [world.ids["permission_id"]]


async def test_a_pattern_of_another_workspace_decides_nothing_here(
    world: World, other_world: World, door: DoorClient
) -> None:
    """Whoever works in one project could allow commands in another (A15 A17)."""
    foreign = other_world.ids["permission_id"]
    assert await grant(door, world, "allow_session", "touch *", foreign) == (200, {"resolved": False})
    assert await waiting(other_world) == [foreign]
