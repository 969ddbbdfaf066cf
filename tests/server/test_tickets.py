"""How a browser gets in: a ticket for a cookie, once; and what that cookie is good for."""

import json
import re

import pytest
import pytest_asyncio
from door_client import Answer, DoorClient
from world import Starter, World

from windlass.server.tokens import TokenStore
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ticket_path(door: DoorClient) -> str:
    answer = await door.send("POST", "/v1/tickets", token=door.server.token)
    return str(answer.json["path"])


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


@pytest_asyncio.fixture(loop_scope="session")
async def cookie(door: DoorClient) -> str:
    return cookie_of(await door.send("GET", await ticket_path(door)))


async def test_a_ticket_is_traded_for_a_cookie_that_scripts_and_other_sites_cannot_use(door: DoorClient) -> None:
    """A page elsewhere, or a script that slipped into ours, could carry the cookie away or have it sent (A3)."""
    answer = await door.send("GET", await ticket_path(door))
    assert (answer.status, answer.headers["location"]) == (303, "/")
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert not any(part.startswith("domain") for part in attributes)


async def test_a_ticket_works_once(door: DoorClient) -> None:
    """A ticket left in a browser's history or a proxy's log would let the next person in (A3)."""
    path = await ticket_path(door)
    assert (await door.send("GET", path)).status == 303
    again = await door.send("GET", path)
    assert again.status == 401
    assert "set-cookie" not in again.headers


async def test_a_ticket_opens_nothing_but_the_front_page(door: DoorClient) -> None:
    """A ticket would be a token in a query string under another name (A3)."""
    ticket = (await ticket_path(door)).removeprefix("/?")
    assert (await door.send("GET", f"/v1/version?{ticket}")).status == 401
    assert (await door.send("POST", f"/?{ticket}")).status == 401


async def test_a_cookie_reads(door: DoorClient, cookie: str) -> None:
    """The page in a browser would see nothing (A3)."""
    answer = await door.send("GET", "/v1/workspaces", headers={"Cookie": cookie, "Sec-Fetch-Site": "same-origin"})
    assert answer.status == 200


async def test_a_cookie_with_the_own_origin_writes(fresh_world: World, door: DoorClient, cookie: str) -> None:
    """The page in a browser could not send a prompt (A3)."""
    headers = {"Cookie": cookie, "Origin": door.server.url}
    target = f"/v1/workspaces/{fresh_world.ids['workspace_id']}/sessions"
    answer = await door.send("POST", target, b'{"title": "From the page"}', headers=headers)
    assert (answer.status, answer.json["title"]) == (200, "From the page")


FOREIGN = {
    "foreign origin": {"Origin": "https://evil.example"},
    "null origin": {"Origin": "null"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "no origin, cross-site": {"Sec-Fetch-Site": "cross-site"},
    "no origin, same-site": {"Sec-Fetch-Site": "same-site"},
    "no origin at all": {},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_a_cookie_with_a_foreign_origin_writes_nothing(
    headers: dict[str, str], world: World, door: DoorClient, cookie: str
) -> None:
    """Any page a person visits could have the agent run commands in their name (A3)."""
    before = await world.state()
    body = json.dumps({"session_id": world.ids["session_id"], "prompt": "touch a file"}).encode()
    target = f"/v1/workspaces/{world.ids['workspace_id']}/agent"
    answer = await door.send("POST", target, body, headers={"Cookie": cookie, **headers})
    assert answer.status == 403, answer.text
    assert await world.state() == before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_cookie_sent_from_another_site_reads_nothing(site: str, door: DoorClient, cookie: str) -> None:
    """A page elsewhere could embed what the server says and measure it (A3)."""
    answer = await door.send("GET", "/v1/workspaces", headers={"Cookie": cookie, "Sec-Fetch-Site": site})
    assert answer.status == 403


async def test_a_cookie_manages_no_more_than_an_operator(door: DoorClient, cookie: str) -> None:
    """A stolen browser session must not outlive its revocation by being an admin (A3 A12)."""
    info = TokenStore(door.server.data_dir).list()
    browsers = [token for token in info if token.name.startswith("browser-")]
    assert browsers and {token.scope for token in browsers} == {"operate"}


async def test_a_cookie_can_be_revoked(door: DoorClient, cookie: str) -> None:
    """A lost phone would stay in for ever (A3 A10)."""
    store = TokenStore(door.server.data_dir)
    identity = store.identify(cookie.partition("=")[2])
    assert identity is not None and store.revoke(identity.name)
    assert (await door.send("GET", "/v1/version", headers={"Cookie": cookie})).status == 401


async def test_a_ticket_of_a_token_that_was_revoked_is_worth_nothing(door: DoorClient) -> None:
    """Whoever took a token could go on with a ticket made from it, after it was taken back (A10)."""
    tokens = TokenStore(door.server.data_dir)
    answer = await door.send("POST", "/v1/tickets", token=tokens.create("lost-phone", "operate"))
    tokens.revoke("lost-phone")
    assert (await door.send("GET", str(answer.json["path"]))).status == 401


async def test_a_cookie_survives_a_restart_of_the_server(start_server: Starter) -> None:
    """Every restart would throw every browser out (A3)."""
    server: ServerProcess = await start_server()
    async with DoorClient(server) as door:
        cookie = cookie_of(await door.send("GET", await ticket_path(door)))
    await server.stop()
    await server.start()
    async with DoorClient(server) as door:
        assert (await door.send("GET", "/v1/version", headers={"Cookie": cookie})).status == 200


async def test_a_ticket_cannot_be_guessed(door: DoorClient) -> None:
    """Tickets are worth a cookie: one that follows from another would be everyone's (A3 A19)."""
    tickets = [(await ticket_path(door)).removeprefix("/?ticket=") for _ in range(2)]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{32,}", ticket) for ticket in tickets)
    assert tickets[0][:8] != tickets[1][:8]
