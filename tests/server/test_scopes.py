"""What a token may do is what its record says."""

import pytest
from door_client import DoorClient
from route_table import CHANGING, CLOSED, ROUTES, Route
from world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

READING = [route for route in ROUTES if not route.changes]


@pytest.mark.parametrize("route", CHANGING, ids=str)
async def test_a_read_token_changes_nothing(
    route: Route, world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """A token given to a dashboard could run commands, or answer for the people who are asked (A12)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    answer = await door.send(route.method, target, body, token=tokens["read"])
    assert answer.status == 403, answer.text
    assert "operate" in answer.message
    assert await world.state() == before


@pytest.mark.parametrize("route", READING, ids=str)
async def test_a_read_token_reads_everything(
    route: Route, world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """A dashboard with a read token would be blind (A12)."""
    target, body = route.filled(world.ids)
    answer = await door.send(route.method, target, body, token=tokens["read"])
    assert answer.status == route.status, answer.text


@pytest.mark.parametrize("route", CLOSED, ids=str)
async def test_a_worker_token_opens_no_client_route(
    route: Route, world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """A sub-agent that was talked into it could steer its own server: approve its own tools, for one (A12)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    answer = await door.send(route.method, target, body, token=tokens["worker"])
    assert answer.status == 403, answer.text
    assert await world.state() == before
