"""Where a stream may begin: at a place in this workspace's log, or it is told that it cannot."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from door_client import DoorClient, raw
from world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")

NONSENSE = [
    "-1",
    "0x10",
    "1.5.2",
    "1;DROP TABLE facts",
    "' OR 1=1 --",
    "epoch.",
    ".5",
    "epoch.-1",
    "epoch.1e3",
    "epoch 1",
    "epoch.9223372036854775808",
    "9223372036854775808",
    "epoch." + "9" * 400,
    "٣",
    "epoch.٣",
    "a" * 5000,
    "\x00",
    "",
]


@pytest.mark.parametrize("cursor", NONSENSE, ids=lambda cursor: repr(cursor[:20]))
async def test_a_cursor_that_is_none_is_refused(cursor: str, world: World, door: DoorClient) -> None:
    """A client with a broken cursor would silently get a wrong stretch of the log (A18 B41)."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/events?client_id={world.ids['client_id']}"
    answer = await door.send("GET", f"{target}&after={quote(cursor)}", token=world.server.token)
    assert answer.status == 400, answer.text
    assert "event id" in answer.message


@pytest.mark.parametrize("cursor", ["-1", "5", "1;DROP TABLE facts", "9223372036854775808", "", "x y"])
async def test_a_header_that_is_no_event_id_is_refused(cursor: str, world: World, door: DoorClient) -> None:
    """`Last-Event-ID` is what a browser sends back by itself: only an id we gave can be in it (A18)."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/events?client_id={world.ids['client_id']}"
    answer = await door.send("GET", target, token=world.server.token, headers={"Last-Event-ID": cursor})
    assert answer.status == 400, answer.text


async def test_a_newline_in_the_cursor_forges_no_event(world: World) -> None:
    """A cursor that is echoed would write an event of its own into the stream (A18 A41)."""
    lines = [
        f"GET /v1/workspaces/{world.ids['workspace_id']}/events?client_id={world.ids['client_id']}"
        "&after=a.1%0d%0adata:%20forged HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {world.server.token}",
        "Connection: close",
    ]
    answer = await raw(world.server, ("\r\n".join(lines) + "\r\n\r\n").encode())
    assert answer.status == 400
    assert "forged" not in answer.body


@pytest_asyncio.fixture(loop_scope="session")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


async def first_events(session: aiohttp.ClientSession, world: World, cursor: str, count: int) -> list[dict[str, Any]]:
    """The first events of a stream that goes on from `cursor`."""
    url = f"{world.server.url}/v1/workspaces/{world.ids['workspace_id']}/events"
    headers = {"Authorization": f"Bearer {world.server.token}", "Last-Event-ID": cursor}
    events: list[dict[str, Any]] = []
    async with session.get(url, params={"client_id": world.ids["client_id"]}, headers=headers) as response:
        assert response.status == 200
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
            if len(events) == count:
                return events
    raise AssertionError(f"the stream ended after {events}")


async def epoch_and_head(world: World) -> tuple[str, int]:
    async with world.api.stream() as tap:
        hello = await tap.wait_for("hello")
    return hello.body["epoch"], hello.body["head"]


@pytest.mark.parametrize("kind", ["another log", "another workspace", "beyond the head", "far beyond the head"])
async def test_a_cursor_from_elsewhere_is_reset(
    kind: str, world: World, other_world: World, session: aiohttp.ClientSession
) -> None:
    """A client would be given facts of a place it was never at, or wait for ever for one that never comes (A18 B41)."""
    epoch, head = await epoch_and_head(world)
    foreign, _ = await epoch_and_head(other_world)
    cursor = {
        "another log": "0123456789abcdef.1",
        "another workspace": f"{foreign}.1",
        "beyond the head": f"{epoch}.{head + 1}",
        "far beyond the head": f"{epoch}.{10**18 - 1}",
    }[kind]
    hello, reset = await first_events(session, world, cursor, 2)
    assert (hello["type"], reset["type"]) == ("hello", "reset")
    body = reset["payload"]["payload"]
    assert (body["epoch"], body["head"]) == (epoch, head) and body["reason"]


async def test_a_stream_needs_a_client_id(world: World, door: DoorClient) -> None:
    """A stream is a claim: one without an owner could never be let go (B30 A18)."""
    target = f"/v1/workspaces/{world.ids['workspace_id']}/events"
    for query in ("", "?client_id=", "?client_id=nobody", "?client_id=1"):
        answer = await door.send("GET", target + query, token=world.server.token)
        assert answer.status == 400 and "client_id" in answer.message
