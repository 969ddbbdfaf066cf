"""Requests that are too slow, too large or two at once are cut, and cost nobody else anything."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from door_client import RawAnswer, connected, raw, raw_to, received
from own_listener import Address, listening
from world import World

from windlass import limits
from windlass.testing.server_process import ServerProcess, until

SHORT = 0.2  # seconds; in the real process it is ten


async def answer_to(address: Address, *pieces: bytes) -> RawAnswer:
    """What comes back until the server closes, after these bytes and no more."""
    return await raw_to(address.host, address.port, *pieces)


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_headers_that_do_not_come_in_time_are_cut(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few machines could hold every socket of the server by saying nothing (A37)."""
    monkeypatch.setattr(limits, "REQUEST_HEADER_SECONDS", SHORT)
    async with listening(tmp_path) as address:
        assert (await answer_to(address, sent)).status == 408


async def test_headers_that_trickle_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then would keep a timer for silence from ever ending (A37)."""
    monkeypatch.setattr(limits, "REQUEST_HEADER_SECONDS", SHORT)
    async with listening(tmp_path) as address:
        with await connected(address.host, address.port) as sock:
            sock.send(b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            answer = asyncio.create_task(received(sock))

            def is_cut() -> bool:
                with contextlib.suppress(ConnectionError):
                    sock.send(b"a")
                return answer.done()

            await until(is_cut, "the connection is cut", 10)
            assert (await answer).status == 408


async def test_a_slow_client_delays_nobody(tmp_path: Path) -> None:
    """One bad link would stop the server for all (A37)."""
    async with listening(tmp_path) as address:
        _, slow = await asyncio.open_connection(address.host, address.port)
        slow.write(b"POST /v1/tickets HTTP/1.1\r\n")
        answer = await raw_to(address.host, address.port, address.head("GET", "/v1/version", "Connection: close"))
        assert answer.status == 200
        slow.close()


async def test_a_body_that_does_not_come_in_time_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request would hold its place in the server for as long as its client likes (A37)."""
    monkeypatch.setattr(limits, "REQUEST_BODY_SECONDS", SHORT)
    async with listening(tmp_path) as address:
        head = address.head("POST", "/v1/control", "Content-Type: application/json", "Content-Length: 100")
        assert (await answer_to(address, head, b'{"command": ')).status == 408


@pytest.mark.asyncio(loop_scope="session")
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(server: ServerProcess) -> None:
    """A gigabyte would be taken in before anyone looked (A37)."""
    lines = ["Content-Type: application/json", "Content-Length: 1000000000"]
    head = Address("", 0, server.token).head("POST", "/v1/control", *lines)
    answer = await raw(server, head)
    assert answer.status == 413
    assert "16 MiB" in answer.body


async def test_a_body_without_a_length_is_cut_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not say how much it is could send without end (A37)."""
    monkeypatch.setattr(limits, "REQUEST_BODY_BYTES", 1000)
    async with listening(tmp_path) as address:
        head = address.head("POST", "/v1/control", "Content-Type: application/json", "Transfer-Encoding: chunked")
        answer = await answer_to(address, head, b"400\r\n" + b"a" * 1024 + b"\r\n")
        assert answer.status == 413


async def test_too_many_connections_are_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Descriptors would run out, and with them the journal and the tools (A37 A38)."""
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    async with listening(tmp_path) as address:
        _, first = await asyncio.open_connection(address.host, address.port)
        assert (await answer_to(address)).status == 503
        first.close()


LARGE = {
    "too many headers": b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-A: b\r\n" * 10_000 + b"\r\n",
    "a header too large": b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 100_000 + b"\r\n\r\n",
    "a name too large": b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a" * 100_000 + b": x\r\n\r\n",
    "an address too large": b"GET /v1/health?" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "with a body": b"POST /v1/control HTTP/1.1\r\nX-A: " + b"a" * 100_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("request_bytes", LARGE.values(), ids=LARGE)
async def test_headers_that_are_too_large_are_refused(request_bytes: bytes, tmp_path: Path) -> None:
    """Memory would go to whoever sends the longest header (A37)."""
    async with listening(tmp_path) as address:
        answer = await answer_to(address, request_bytes)
        assert answer.status == 431
        assert answer.head.count("HTTP/1.1") == 1 and "HTTP/1.1" not in answer.body


SMUGGLED = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
TWO_LENGTHS = {
    "both": b"Content-Length: 4\r\nTransfer-Encoding: chunked",
    "both, the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    "two lengths": b"Content-Length: 4\r\nContent-Length: 0",
    "a list of lengths": b"Content-Length: 4, 0",
    "a negative length": b"Content-Length: -1",
    "a signed length": b"Content-Length: +4",
    "a length in hex": b"Content-Length: 0x4",
    "an unknown coding": b"Transfer-Encoding: xchunked",
    "chunked is not last": b"Transfer-Encoding: chunked, identity",
    "a space before the colon": b"Transfer-Encoding : chunked\r\nContent-Length: 4",
    "a folded header": b"X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 4",
}


@pytest.mark.parametrize("lengths", TWO_LENGTHS.values(), ids=TWO_LENGTHS)
async def test_a_request_of_doubtful_length_is_refused_whole(lengths: bytes, tmp_path: Path) -> None:
    """A proxy in front would see one request where the server sees two, and let the second through (A37)."""
    async with listening(tmp_path) as address:
        head = address.head("POST", "/v1/control", "Content-Type: application/json", lengths.decode())
        answer = await answer_to(address, head + b"0\r\n\r\n" + SMUGGLED)
        assert 400 <= answer.status < 500, answer
        assert "HTTP/1.1" not in answer.body, "the bytes behind it were answered as a second request"


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"-1\r\n", b"fffffffffffffffff\r\n", b"1\r\nab\r\n", b"\r\n"])
async def test_chunked_nonsense_is_refused(chunk: bytes, tmp_path: Path) -> None:
    """A parser that guesses where a body ends can be led to take its rest for a request (A37)."""
    async with listening(tmp_path) as address:
        head = address.head("POST", "/v1/control", "Content-Type: application/json", "Transfer-Encoding: chunked")
        answer = await answer_to(address, head + chunk + SMUGGLED)
        assert 400 <= answer.status < 500, answer
        assert "HTTP/1.1" not in answer.body


@pytest.mark.asyncio(loop_scope="session")
async def test_a_get_with_a_body_is_refused(world: World) -> None:
    """An endless body behind a stream's request would keep its claim alive when the client is gone (A37 B22)."""
    path = f"/v1/workspaces/{world.ids['workspace_id']}/events?client_id={world.ids['client_id']}"
    for lines in (["Content-Length: 5"], ["Transfer-Encoding: chunked"]):
        head = Address("", 0, world.server.token).head("GET", path, *lines)
        assert (await raw(world.server, head)).status == 400
