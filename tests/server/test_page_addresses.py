"""Where a browser may open the page: addresses that reach the server, and that its door answers to."""

import pytest
from door_client import DoorClient
from world import Starter

from windlass.server.addresses import page_addresses
from windlass.server.door import answers_to, host_name

CASES = {
    "this machine only": (["http://127.0.0.1:4747"], [], ["http://127.0.0.1:4747"]),
    "IPv6": (["http://[::1]:4747"], [], ["http://[::1]:4747"]),
    "a name for a wildcard": (
        ["http://0.0.0.0:4747"],
        ["box.local"],
        ["http://box.local:4747", "http://127.0.0.1:4747"],
    ),
    "a wildcard that nobody may name": (["http://0.0.0.0:4747"], [], ["http://127.0.0.1:4747"]),
    "an IPv6 wildcard": (["http://[::]:4747"], ["fd00::1"], ["http://[fd00::1]:4747", "http://[::1]:4747"]),
    "an address of the network that is allowed": (
        ["http://192.168.1.5:4747"],
        ["192.168.1.5"],
        ["http://192.168.1.5:4747"],
    ),
    "an address of the network that the door refuses": (["http://192.168.1.5:4747"], [], []),
    "a name for an address of the network": (
        ["http://192.168.1.5:4747"],
        ["Box.Local"],
        ["http://box.local:4747"],
    ),
    "an allowed address that is another": (["http://192.168.1.5:4747"], ["192.168.1.6"], []),
    "a name does not lead to a loopback address": (["http://127.0.0.1:4747"], ["box.local"], ["http://127.0.0.1:4747"]),
    "TLS on its own port": (["https://0.0.0.0:443"], ["box.example"], ["https://box.example", "https://127.0.0.1"]),
    "a Unix socket": (["unix:/run/windlass.sock"], ["box.local"], []),
    "nonsense that is no host": (["http://0.0.0.0:4747"], ["a/b", "x y", "<b>", ""], ["http://127.0.0.1:4747"]),
    "what others reach comes first": (
        ["http://127.0.0.1:1", "unix:/x", "https://0.0.0.0:2"],
        ["b.local", "a.local"],
        ["https://a.local:2", "https://b.local:2", "http://127.0.0.1:1", "https://127.0.0.1:2"],
    ),
}


@pytest.mark.parametrize(("listening", "allowed", "expected"), CASES.values(), ids=CASES)
def test_the_addresses_are_those_at_which_a_browser_is_let_in(
    listening: list[str], allowed: list[str], expected: list[str]
) -> None:
    """A person would scan a code that leads nowhere, or to a refusal (A4)."""
    assert page_addresses(listening, allowed) == expected


@pytest.mark.asyncio(loop_scope="session")
async def test_a_ticket_comes_with_the_addresses_to_open(start_server: Starter) -> None:
    """Whoever asks for a ticket would have to know where the server is reached from outside (A3)."""
    server = await start_server("--allow-host", "box.test", listen="0.0.0.0:0")
    port = server.url.rpartition(":")[2]
    async with DoorClient(server) as door:
        given = (await door.send("POST", "/v1/tickets", token=server.token)).json
        assert given["urls"] == [f"http://box.test:{port}{given['path']}", f"http://127.0.0.1:{port}{given['path']}"]
        answer = await door.send("GET", given["path"], headers={"Host": f"box.test:{port}"})
    assert answer.status == 303


def test_what_is_no_name_is_never_answered_to() -> None:
    """A host that cannot be read would be let in by an option that was left empty (A4)."""
    assert not answers_to(host_name("evil.example/<x>"), frozenset({""}))
