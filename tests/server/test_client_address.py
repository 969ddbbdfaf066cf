"""Where programs on the server's own machine are sent: to an address that its door answers to."""

import pytest

from windlass.server.addresses import client_address


@pytest.mark.parametrize(
    ("listening", "allowed", "address"),
    [
        ("http://127.0.0.1:4747", [], "http://127.0.0.1:4747"),
        ("unix:/run/windlass.sock", ["ship"], "unix:/run/windlass.sock"),
        ("http://0.0.0.0:4747", [], "http://127.0.0.1:4747"),
        ("http://0.0.0.0:4747", ["ship"], "http://127.0.0.1:4747"),
        ("http://[::]:4747", ["ship"], "http://[::1]:4747"),
        ("https://0.0.0.0:4747", ["ship"], "https://127.0.0.1:4747"),
        ("https://0.0.0.0:4747", [], "https://127.0.0.1:4747"),
        ("http://192.168.1.5:4747", ["ship"], "http://ship:4747"),
        ("http://192.168.1.5:4747", ["192.168.1.5"], "http://192.168.1.5:4747"),
        ("http://192.168.1.5:4747", [], "http://192.168.1.5:4747"),
    ],
)
def test_a_client_here_is_sent_where_the_door_answers(listening: str, allowed: list[str], address: str) -> None:
    """A server on all addresses left `0.0.0.0` for its clients, and then refused them for the name they used."""
    assert client_address(listening, allowed) == address
