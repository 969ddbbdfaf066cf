"""What belongs to one workspace is unknown in every other, and cannot be guessed."""

import re
import uuid
from typing import Any

import pytest
from door_client import DoorClient
from route_table import IN_WORKSPACE, Route, W
from world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Beside the rows of the table: ids that go into a query.
BY_QUERY = [
    Route("GET", f"{W}/sessions", "read", query="parent={session_id}"),
    Route("GET", f"{W}/runs", "read", query="session={session_id}"),
    Route("GET", f"{W}/runs", "read", query="after={run_id}"),
]
NAMES = ("session_id", "run_id", "permission_id", "batch_id")


def takes_an_id(route: Route) -> bool:
    return any(f"{{{name}}}" in f"{route.path} {route.query} {route.body}" for name in NAMES)


ID_TAKING = [route for route in [*IN_WORKSPACE, *BY_QUERY] if takes_an_id(route)]


def unknown(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same form that nobody ever made."""
    return {name: re.sub(r"[0-9a-f]{32}", lambda _: uuid.uuid4().hex, value) for name, value in ids.items()}


async def answered(door: DoorClient, route: Route, ids: dict[str, str]) -> tuple[int, Any]:
    target, body = route.filled(ids)
    answer = await door.send(route.method, target, body, token=door.server.token)
    return answer.status, answer.json


@pytest.mark.parametrize("route", ID_TAKING, ids=lambda route: f"{route} {route.query}")
async def test_ids_of_another_workspace_are_unknown(
    route: Route, world: World, other_world: World, door: DoorClient
) -> None:
    """Who works in one workspace could read, cancel or answer what happens in another, or learn of it (A15)."""
    before = await world.state(), await other_world.state()
    mine = {"workspace_id": other_world.ids["workspace_id"], "client_id": other_world.ids["client_id"]}
    foreign = await answered(door, route, {**world.ids, **mine})
    nobodys = await answered(door, route, {**unknown(world.ids), **mine})
    assert foreign == nobodys
    assert foreign[0] == 404 or foreign[1] in ({"resolved": False}, {"canceled": []}, []), foreign
    assert (await world.state(), await other_world.state()) == before


async def test_a_message_of_another_session_is_no_place_to_go_on_from(
    world: World, other_world: World, door: DoorClient
) -> None:
    """A foreign message id would be a way to find out what another workspace holds (A15)."""
    path = f"/v1/workspaces/{other_world.ids['workspace_id']}/sessions/{other_world.ids['session_id']}/messages"
    foreign = await door.send("GET", f"{path}?after={world.ids['message_id']}", token=door.server.token)
    nobodys = await door.send("GET", f"{path}?after=msg_{uuid.uuid4().hex}", token=door.server.token)
    assert (foreign.status, foreign.json) == (nobodys.status, nobodys.json)
    assert foreign.status == 404


@pytest.mark.parametrize("route", IN_WORKSPACE, ids=str)
async def test_a_workspace_that_is_not_open_is_not_found(route: Route, world: World, door: DoorClient) -> None:
    """A client could not tell a closed workspace from a broken server (B31 A15)."""
    nowhere = {**world.ids, "workspace_id": unknown(world.ids)["workspace_id"]}
    status, body = await answered(door, route, nowhere)
    assert status == 404 and body["message"], body


@pytest.mark.parametrize(
    "name", ["workspace_id", "session_id", "waiting_run_id", "permission_id", "batch_id", "message_id"]
)
async def test_ids_cannot_be_guessed(name: str, world: World, other_world: World) -> None:
    """Ids that follow from one another would be an invitation to try the next one (A19)."""
    first, second = world.ids[name], other_world.ids[name]
    assert all(re.fullmatch(r"[a-z]+_[0-9a-f]{32}", made) for made in (first, second))
    same = sum(a == b for a, b in zip(first[-32:], second[-32:], strict=True))
    assert same < 16, "two ids of 128 random bits agree in about two of their 32 digits"
