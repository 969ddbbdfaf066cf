"""The door looks at Host and Origin first: pages elsewhere must not reach the server through a browser."""

import pytest
from door_client import DoorClient, RawAnswer, raw
from route_table import ROUTES, Route
from world import Starter, World

from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def get_version(server: ServerProcess, *header_lines: str, target: str = "/v1/version") -> RawAnswer:
    """A raw request with a valid token and exactly these header lines."""
    lines = [f"GET {target} HTTP/1.1", *header_lines, f"Authorization: Bearer {server.token}", "Connection: close"]
    return await raw(server, ("\r\n".join(lines) + "\r\n\r\n").encode())


FOREIGN_HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example:80",
    "user@127.0.0.1",
    "127.0.0.1@evil.example",
    "127.0.0.1#.evil.example",
    "127.0.0.1/.evil.example",
    "127.0.0.1?.evil.example",
    "127.0.0.1\\.evil.example",
    "127.0.0.1, evil.example",
    "[::1].evil.example",
    "[::1",
    "0.0.0.0",
    "10.0.0.1",
    "2130706433",
    "",
    ":80",
    "a" * 5000,
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS, ids=lambda host: host[:30] or "empty")
async def test_a_foreign_host_is_refused(host: str, server: ServerProcess) -> None:
    """A page elsewhere that has its name point at this machine would be taken for a local client (A4)."""
    assert (await get_version(server, f"Host: {host}")).status == 421


async def test_no_host_is_refused(server: ServerProcess) -> None:
    """Leaving the header away would be the way around it (A4)."""
    assert (await get_version(server)).status == 421
    old = f"GET /v1/version HTTP/1.0\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    assert (await raw(server, old)).status == 421


@pytest.mark.parametrize("pair", [("127.0.0.1", "evil.example"), ("evil.example", "127.0.0.1"), ("127.0.0.1",) * 2])
async def test_two_hosts_are_refused(pair: tuple[str, str], server: ServerProcess) -> None:
    """Which of the two counts would be a guess (A4)."""
    assert (await get_version(server, *(f"Host: {host}" for host in pair))).status == 421


@pytest.mark.parametrize("target", ["http://evil.example/v1/version", "http://127.0.0.1/v1/version"])
async def test_an_absolute_target_is_refused(target: str, server: ServerProcess) -> None:
    """Its name outranks the Host header, so the check would look at the wrong one (A4)."""
    assert (await get_version(server, "Host: 127.0.0.1", target=target)).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]", "[::1]:4747", "127.9.9.9:1"])
async def test_loopback_names_are_ours(host: str, server: ServerProcess) -> None:
    """People write the local machine in several ways; each would be locked out (A4)."""
    assert (await get_version(server, f"Host: {host}")).status == 200


@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_a_foreign_host_is_refused_on_every_route(route: Route, world: World, door: DoorClient) -> None:
    """One route that is not behind the door is enough for a page elsewhere (A4)."""
    target, body = route.filled(world.ids)
    before = await world.head()
    answer = await door.send(route.method, target, body, token=world.server.token, headers={"Host": "evil.example"})
    assert answer.status == 421, answer.text
    assert await world.head() == before


async def test_a_host_that_was_allowed_is_answered(start_server: Starter) -> None:
    """Nobody could reach a server through the name they gave their machine (A4)."""
    server = await start_server("--allow-host", "Workshop.example")
    assert (await get_version(server, "Host: workshop.example:4747")).status == 200
    assert (await get_version(server, "Host: other.example")).status == 421
    assert (await get_version(server, "Host: a.workshop.example")).status == 421


FOREIGN_ORIGINS = [
    "https://evil.example",
    "null",
    "http://localhost:1234",
    "http://localhost.evil.example",
    "http://127.0.0.1",
    "https://{own}",
    "http://{own}.evil.example",
    "http://evil.example#http://{own}",
    "file://",
    "",
]


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS, ids=lambda origin: origin or "empty")
async def test_a_foreign_origin_is_refused_even_with_a_token(origin: str, door: DoorClient) -> None:
    """A page that got hold of a token, or guessed a port, could speak to the server from a browser (A5)."""
    own = door.server.url.removeprefix("http://")
    headers = {"Origin": origin.format(own=own)}
    answer = await door.send("GET", "/v1/version", token=door.server.token, headers=headers)
    assert answer.status == 403, answer.text


@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_a_foreign_origin_is_refused_on_every_route(route: Route, world: World, door: DoorClient) -> None:
    """One route that is not behind the door is enough for a page elsewhere (A5)."""
    target, body = route.filled(world.ids)
    before = await world.head()
    headers = {"Origin": "https://evil.example"}
    answer = await door.send(route.method, target, body, token=world.server.token, headers=headers)
    assert answer.status == 403, answer.text
    assert await world.head() == before


@pytest.mark.parametrize("route", ROUTES, ids=str)
async def test_no_answer_ever_invites_another_origin(route: Route, fresh_world: World, door: DoorClient) -> None:
    """A CORS header would let a page read what it was refused to do (A5)."""
    target, body = route.filled(fresh_world.ids)
    token, preflight = fresh_world.server.token, {"Access-Control-Request-Method": route.method}
    answers = [
        await door.send("OPTIONS", target, headers={"Origin": "https://evil.example", **preflight}),
        await door.send("OPTIONS", target, token=token, headers={"Origin": door.server.url, **preflight}),
        await door.send(route.method, target, body, token=token, headers={"Origin": door.server.url}),
    ]
    assert [answer.status for answer in answers] == [403, answers[1].status, route.status]
    headers = {name.lower() for answer in answers for name in answer.headers}
    assert not {name for name in headers if name.startswith("access-control")}


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
CALLERS = {
    "nobody": (401, {}),
    "foreign": (403, {"Origin": "https://evil.example"}),
    "token": (None, {"Authorization": "Bearer {token}"}),
    "token, foreign": (403, {"Authorization": "Bearer {token}", "Origin": "https://evil.example"}),
}


@pytest.mark.parametrize("caller", CALLERS)
async def test_an_upgrade_to_websocket_is_never_accepted(caller: str, world: World) -> None:
    """A WebSocket is not bound by the same-origin rule: one that is accepted is open to every page (A6)."""
    status, extra = CALLERS[caller]
    for path in ("/", "/v1/version", f"/v1/workspaces/{world.ids['workspace_id']}/sessions", "/ws"):
        headers = {"Host": "127.0.0.1", **UPGRADE, **extra}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        request = ("\r\n".join(lines) + "\r\n\r\n").format(token=world.server.token)
        reply = await raw(world.server, request.encode(), head_only=True)
        assert reply.status not in (0, 101), reply.head
        assert status is None or reply.status == status, reply.head
