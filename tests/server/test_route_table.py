"""The table of routes is the router's: complete, and with samples that work."""

import pytest
from door_client import DoorClient
from route_table import ROUTES, Route
from world import World

from windlass.server.app import create_app
from windlass.server.services import Services


def served_routes() -> set[tuple[str, str]]:
    """Every method and path the real router answers, but for the framework's own OPTIONS."""
    app = create_app(Services(*[None] * 6))  # type: ignore[arg-type]
    return {
        (method, route.path_format)
        for route in app.routes
        for method in getattr(route, "methods", {"not http"})
        if method not in ("OPTIONS", "HEAD")
    }


def test_every_route_has_its_row() -> None:
    """A route nobody put into the table would be one that no security test ever knocked on (A1)."""
    assert {(route.method, route.path) for route in ROUTES} == served_routes()


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_the_sample_of_every_row_is_answered_as_it_says(
    route: Route, fresh_world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """A sample that is refused for another reason would make every walk over the table prove nothing (A1 A12)."""
    target, body = route.filled(fresh_world.ids)
    answer = await door.send(route.method, target, body, token=tokens["operate"])
    assert answer.status == route.status, answer.text
