"""Addresses that try to leave their place, and directories that are no workspace."""

from pathlib import Path
from typing import Any

import pytest
from door_client import DoorClient, raw
from world import World

from windlass import limits
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

ODD = [
    "../../version",
    "..%2f..%2fversion",
    "%2e%2e%2f%2e%2e%2fversion",
    "%252e%252e%252f",
    "..%5c..%5c",
    "%00",
    "a%00b",
    "%ff%fe",
    "%c0%ae%c0%ae",
    "%0d%0aX-Injected:%201",
    "C:",
    "...",
    "%20",
    "'%20OR%201=1--",
    "a" * 5000,
    "%F0%9F%92%A3",
    "{session_id}",
    ";a=b",
]
PLACES = [
    "/v1/workspaces/{odd}",
    "/v1/workspaces/{odd}/sessions",
    "/v1/workspaces/{workspace_id}/sessions/{odd}",
    "/v1/workspaces/{workspace_id}/sessions/{odd}/messages",
    "/v1/workspaces/{workspace_id}/runs/{odd}",
    "/v1/workspaces/{workspace_id}/agent/sessions/{odd}",
    "/v1/workspaces/{workspace_id}/sessions/{session_id}/messages?after={odd}",
    "/v1/workspaces/{workspace_id}/runs?after={odd}",
    "/v1/workspaces/{workspace_id}/runs?limit={odd}",
    "/v1/workspaces/{workspace_id}/runs?state={odd}",
    "/v1/{odd}",
    "/{odd}",
]


@pytest.mark.parametrize("place", PLACES)
async def test_an_odd_id_is_not_found_and_never_an_error(place: str, world: World, door: DoorClient) -> None:
    """An id that is taken for a path, or breaks the server, is where an attack begins (A20)."""
    for odd in ODD:
        target = place.format_map({**world.ids, "odd": odd})
        answer = await door.send("GET", target, token=world.server.token)
        assert answer.status in (400, 404), (odd, answer.status, answer.text)
        assert answer.message and "x-injected" not in answer.headers


@pytest.mark.parametrize("raw_target", [b"/v1/\xff\xfe", b"/v1/\x80", b"/v1/workspaces/a b", b"v1/version", b"*"])
async def test_a_target_that_is_no_address_is_refused(raw_target: bytes, server: ServerProcess) -> None:
    """Bytes that no browser would send must not reach, or break, anything behind the door (A20)."""
    request = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n"
    answer = await raw(server, request % (raw_target, server.token.encode()))
    assert 400 <= answer.status < 500, answer


@pytest.mark.parametrize("odd", ["..%2f", "%00", "%ff", "nobody", "1" * 5000])
async def test_only_a_uuid_can_say_goodbye(odd: str, door: DoorClient) -> None:
    """Made-up names would fill the memory of those who left (A20 B34)."""
    answer = await door.send("DELETE", f"/v1/clients/{odd}", token=door.server.token)
    assert answer.status in (400, 404), answer.text


ROOTS = {
    "the root": "/",
    "the root, spelled oddly": "//../.",
    "the data directory": "{data}",
    "inside the data directory": "{data}/inner",
    "around the data directory": "{around}",
    "a link to the data directory": "{tmp}/to-data",
    "a link into the data directory": "{tmp}/to-inner",
    "a link to the root": "{tmp}/to-root",
    "a way back into it": "{tmp}/to-inner/..",
    "a file": "{tmp}/file.txt",
    "nothing": "{tmp}/missing",
    "a dangling link": "{tmp}/dangling",
    "a loop": "{tmp}/loop",
    "a relative path": "project",
    "a relative way up": "../..",
    "a home": "~",
    "a NUL": "{tmp}\x00",
    "an address": "file://{tmp}",
    "an overlong path": "/tmp" + "/a" * limits.PATH_CHARACTERS,
    "an overlong name": "{tmp}/" + "a" * 4000,
}


@pytest.fixture
def odd_places(tmp_path: Path, server: ServerProcess) -> dict[str, Any]:
    inner = server.data_dir / "inner"
    inner.mkdir(exist_ok=True)
    links = {"to-data": server.data_dir, "to-inner": inner, "to-root": "/", "dangling": "nowhere", "loop": "loop"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "file.txt").touch()
    return {"data": server.data_dir, "around": server.directory, "tmp": tmp_path}


@pytest.mark.parametrize("root", ROOTS)
async def test_a_directory_that_is_no_workspace_is_refused(root: str, odd_places: dict[str, Any], world: World) -> None:
    """The agent would be let loose on the whole machine, or on its own tokens and log (A24)."""
    before = await world.state()
    path = ROOTS[root].format_map(odd_places)
    status, answer = await world.api.call("POST", "/v1/workspaces", {"path": path, "client_id": world.api.client_id})
    assert status == 422, (status, answer)
    assert "path" in answer["message"] and str(world.server.data_dir) not in answer["message"]
    assert await world.state() == before
