"""Only JSON is taken: what a page can post elsewhere without asking first is refused, and nothing is run."""

import json

import pytest
from door_client import DoorClient, raw
from route_table import CHANGING, WITH_BODY, Route
from world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

# What a browser sends across sites without a preflight (and a beacon is one of these), and what else is not JSON.
KINDS = [
    None,
    "text/plain",
    "text/plain; charset=utf-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/json",
    "application/jsonp",
    "application/octet-stream",
    "text/plain; application/json",
]


@pytest.mark.parametrize("route", WITH_BODY, ids=str)
async def test_a_body_that_is_not_declared_as_json_is_refused(route: Route, world: World, door: DoorClient) -> None:
    """Any page could post a form to the server and have something run (A7)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    for kind in KINDS:
        answer = await door.send(route.method, target, body, token=world.server.token, kind=kind)
        assert (answer.status, kind) == (415, kind), answer.text
        assert "application/json" in answer.message
    assert await world.state() == before


@pytest.mark.parametrize("route", CHANGING, ids=str)
async def test_a_form_without_a_body_is_refused(route: Route, world: World, door: DoorClient) -> None:
    """Cancel, clear and tickets need no body: an empty form post would be enough (A7)."""
    before = await world.state()
    target, _ = route.filled(world.ids)
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        answer = await door.send(route.method, target, b"", token=world.server.token, kind=kind)
        assert answer.status == 415, answer.text
    assert await world.state() == before


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_json_is_taken_however_it_is_written(kind: str, fresh_world: World, door: DoorClient) -> None:
    """A client whose library adds a charset would be locked out (A7)."""
    target = f"/v1/workspaces/{fresh_world.ids['workspace_id']}/sessions"
    answer = await door.send("POST", target, b'{"title": "x"}', token=door.server.token, kind=kind)
    assert answer.status == 200, answer.text


async def test_two_content_types_are_refused(world: World) -> None:
    """The one that is checked might not be the one that is used (A7)."""
    body = json.dumps({"title": "x"})
    lines = [
        f"POST /v1/workspaces/{world.ids['workspace_id']}/sessions HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {world.server.token}",
        "Content-Type: text/plain",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    before = await world.head()
    answer = await raw(world.server, ("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    assert answer.status == 400
    assert await world.head() == before
