"""Without a valid token there is nothing to be had, whatever is tried in its place."""

import base64

import pytest
from door_client import DoorClient, raw
from route_table import CHANGING, CLOSED, Route
from world import World

from windlass import limits
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


def bad_credentials(token: str) -> dict[str, dict[str, str]]:
    """Headers that are almost, but not quite, a credential."""
    basic = base64.b64encode(f"local:{token}".encode()).decode()
    return {
        "none": {},
        "empty": {"Authorization": ""},
        "no token": {"Authorization": "Bearer "},
        "wrong": {"Authorization": "Bearer wl_" + "A" * 43},
        "truncated": {"Authorization": f"Bearer {token[:-1]}"},
        "longer": {"Authorization": f"Bearer {token}A"},
        "other case": {"Authorization": f"Bearer {token.swapcase()}"},
        "other scheme": {"Authorization": f"Basic {basic}"},
        "no scheme": {"Authorization": token},
        "two in one": {"Authorization": f"Bearer {token}, Bearer {token}"},
        "wrong cookie": {"Cookie": "windlass=wl_" + "A" * 43},
        "other cookie": {"Cookie": f"other={token}"},
        "other header": {"X-Authorization": f"Bearer {token}", "X-Api-Key": token},
    }


@pytest.mark.parametrize("route", CLOSED, ids=str)
async def test_no_route_opens_without_a_valid_token(route: Route, world: World, door: DoorClient) -> None:
    """Anyone who can reach the port could read conversations, or have the agent run commands (A1)."""
    before = await world.state()
    target, body = route.filled(world.ids)
    for name, headers in bad_credentials(world.server.token).items():
        answer = await door.send(route.method, target, body, headers=headers)
        assert (answer.status, name) == (401, name), answer.text
        assert answer.headers["www-authenticate"] == "Bearer"
    assert await world.state() == before


@pytest.mark.parametrize("route", CLOSED, ids=str)
async def test_a_token_in_the_query_is_no_credential(route: Route, world: World, door: DoorClient) -> None:
    """A token in an address ends up in histories, logs and Referer headers: it must never have worked (A3)."""
    target, body = route.filled(world.ids)
    sign = "&" if "?" in target else "?"
    for name in ("token", "access_token", "authorization"):
        answer = await door.send(route.method, f"{target}{sign}{name}={world.server.token}", body)
        assert answer.status == 401, answer.text


async def test_health_alone_needs_no_credential_and_says_nothing(door: DoorClient) -> None:
    """A supervisor could not tell whether the server lives, or a stranger would learn something from it (A1)."""
    answer = await door.send("GET", "/v1/health")
    assert (answer.status, answer.text) == (200, "")


@pytest.mark.parametrize("query", ["ticket=", "ticket=nonsense", "xticket=1", "a=ticket=1", "ticket", "TICKET=1"])
async def test_the_front_page_is_closed_to_a_bad_ticket(query: str, door: DoorClient) -> None:
    """A query that merely looks like a ticket would be a way in without any credential (A1)."""
    answer = await door.send("GET", f"/?{query}")
    assert answer.status == 401, answer.text


async def test_a_path_that_merely_looks_like_health_is_closed(door: DoorClient) -> None:
    """A check that compares paths loosely could be walked around by spelling one differently (A1)."""
    for path in ("/v1/health/", "/v1/health/../version", "/v1/health%2f..%2fversion", "//v1/health", "/v1/health;x"):
        answer = await door.send("GET", path)
        assert answer.status in (200, 401), path
        assert answer.status == 401 or answer.text == "", path


@pytest.mark.parametrize("route", CHANGING, ids=str)
async def test_a_scope_that_the_client_claims_is_ignored(
    route: Route, world: World, door: DoorClient, tokens: dict[str, str]
) -> None:
    """A reader could make itself an operator by saying so (A11)."""
    target, body = route.filled({**world.ids, "scope": "admin"})
    sign = "&" if "?" in target else "?"
    claims = {"X-Scope": "admin", "X-Role": "admin", "X-User": "local", "X-Forwarded-User": "local"}
    if body is not None:
        body = b'{"scope": "admin", "role": "admin", "token": "local", ' + body[1:]
    answer = await door.send(
        route.method, f"{target}{sign}scope=admin&role=admin", body, token=tokens["read"], headers=claims
    )
    assert answer.status == 403, answer.text


async def test_guessing_is_limited_for_a_peer(door: DoorClient) -> None:
    """A loop of guesses would cost the server's time for as long as it likes (A9)."""
    for number in range(limits.AUTH_FAILURES_PER_PEER):
        answer = await door.send("GET", "/v1/version", token=f"guess-{number}")
        assert answer.status == 401
    answer = await door.send("GET", "/v1/version", token="one-more")
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= limits.AUTH_FAILURE_WINDOW_SECONDS + 1


async def test_a_guesser_locks_out_nobody(server: ServerProcess) -> None:
    """Any program on the machine could shut the owner out by guessing badly on purpose (A9)."""
    async with DoorClient(server) as guesser, DoorClient(server) as neighbour:
        for number in range(limits.AUTH_FAILURES_PER_PEER + 5):
            last = await guesser.send("GET", "/v1/version", token=f"guess-{number}")
        assert last.status == 429
        assert (await guesser.send("GET", "/v1/version", token=server.token)).status == 200
        assert (await neighbour.send("GET", "/v1/version", token="first guess")).status == 401


async def test_two_authorization_headers_are_refused(server: ServerProcess) -> None:
    """Which of the two counts would be a guess, and a proxy in front may guess otherwise (A1)."""
    answer = await raw(
        server,
        b"GET /v1/version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        b"Authorization: Bearer nonsense\r\nAuthorization: Bearer %s\r\n\r\n" % server.token.encode(),
    )
    assert answer.status == 400
