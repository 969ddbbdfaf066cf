"""Who may open a link to a worker, and what one that may can do to it."""

import asyncio
import contextlib
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
import structlog

from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer, within
from windlass import limits
from windlass.errors import Invalid
from windlass.fleet.worker.echo import EchoExecutor
from windlass.fleet.worker.worker import WorkerAddress, WorkerOptions, serve_worker

UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def answer(worker: WorkerAddress, head: str) -> str:
    """What is answered to a request's head before the worker closes, or switches protocols."""
    place = urlsplit(worker.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(head.encode("latin-1"))
        status = (await within(reader.readline())).decode()
        if " 101 " not in status:
            status += (await within(reader.read())).decode()
        return status
    finally:
        writer.close()
        await writer.wait_closed()


def request(path: str = "/", *headers: str, upgrade: str = UPGRADE) -> str:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{upgrade}{lines}\r\n"


# -- the secret --------------------------------------------------------------------------------------------------------


async def test_without_the_secret_nobody_gets_in() -> None:
    """Every program on the machine, and every web page, could give an agent orders (A1 A6)."""
    async with own_worker() as worker:
        secret = worker.token
        wrong = ["", "x", secret[:-1], secret + "x", secret.swapcase(), secret + "/", "?" + secret, "?token=" + secret]
        for path in wrong:
            assert (await answer(worker, request("/" + path))).startswith("HTTP/1.1 401 "), path
        for header in ("", "Bearer", f"Bearer {secret}x", f"Basic {secret}", f"Bearer {secret.swapcase()}", secret):
            assert (await answer(worker, request("/", f"Authorization: {header}"))).startswith("HTTP/1.1 401 "), header
        # A header that is there must be right, whatever the path says.
        assert " 401 " in await answer(worker, request("/" + secret, "Authorization: Bearer wrong"))
        twice = [f"Authorization: Bearer {secret}"] * 2
        assert " 400 " in await answer(worker, request("/", *twice))


async def test_the_secret_may_come_as_a_header_or_as_the_path() -> None:
    """Peers that can send no header, or want none in a path, could not connect."""
    async with own_worker() as worker:
        place = urlsplit(worker.url)
        async with PlainPeer(worker.url) as peer:
            assert (await peer.ask("path"))[1]["status"] == "completed"
        headers = {"Authorization": f"Bearer {worker.token}"}
        async with PlainPeer(f"ws://{place.netloc}/", headers=headers) as peer:
            assert (await peer.ask("header"))[1]["status"] == "completed"


async def test_a_secret_of_any_characters_works_as_a_path() -> None:
    """A parent that makes its secrets in another way could not connect."""
    async with own_worker(secret="sl/ash ünï?#%") as worker, PlainPeer(worker.url) as peer:
        assert (await peer.ask("x"))[1]["status"] == "completed"


async def test_each_worker_has_a_secret_of_its_own() -> None:
    """Who has seen one worker's could use them all (A2)."""
    async with own_worker() as one, own_worker() as other:
        assert one.token != other.token
        assert len(one.token) >= 40


async def test_the_secret_is_not_in_what_is_logged_or_shown() -> None:
    """Whoever reads the log could give orders (A39)."""
    with structlog.testing.capture_logs() as logs:
        async with own_worker() as worker:
            await answer(worker, request("/wrong"))
            async with PlainPeer(worker.url) as peer:
                await peer.socket.send_str(f'{{"kind": "{worker.token}"}}')
                await peer.ask("x")
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "connection refused",
        "frame not understood",
    ]
    shown = repr(logs) + repr(worker) + repr(WorkerOptions(secret=worker.token))
    assert worker.token not in shown


# -- before a byte of WebSocket is spoken ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://localhost:1", "http://127.0.0.1", "http://127.0.0.1.evil.example"],
)
async def test_a_foreign_page_is_refused_even_with_the_secret(origin: str) -> None:
    """A page that has learnt the secret could use the visitor's worker (A5 A6)."""
    async with own_worker() as worker:
        path = "/" + worker.token
        assert (await answer(worker, request(path, f"Origin: {origin}"))).startswith("HTTP/1.1 403 ")
        assert (await answer(worker, request("/", f"Origin: {origin}"))).startswith("HTTP/1.1 403 ")


async def test_our_own_origin_is_let_in() -> None:
    """A client that always sends its target as the Origin could not connect."""
    async with own_worker() as worker:
        origin = f"http://{urlsplit(worker.url).netloc}"
        async with PlainPeer(worker.url, headers={"Origin": origin}) as peer:
            assert (await peer.ask("x"))[1]["status"] == "completed"


WRONG_REQUESTS = {
    "no upgrade": (lambda path: request(path, upgrade=""), 426),
    "another method": (lambda path: request(path).replace("GET", "POST", 1), 426),
    "another version": (lambda path: request(path).replace("Version: 13", "Version: 8"), 426),
    "no key": (lambda path: request(path).replace("dGhlIHNhbXBsZSBub25jZQ==", "short"), 400),
    "not http": (lambda path: "hello\r\n\r\n", 400),
    "many headers": (lambda path: request(path, *(f"X-{n}: y" for n in range(200))), 431),
}


@pytest.mark.parametrize("name", WRONG_REQUESTS)
async def test_what_is_no_websocket_is_answered_and_closed(name: str) -> None:
    """A wrong request would hang, or be taken for a link."""
    make, status = WRONG_REQUESTS[name]
    async with own_worker() as worker:
        assert (await answer(worker, make("/" + worker.token))).startswith(f"HTTP/1.1 {status} ")


async def test_an_origin_behind_too_many_headers_is_not_overlooked() -> None:
    """A bound on headers would hide the one that matters (A6)."""
    headers = [*(f"X-{number}: y" for number in range(150)), "Origin: https://evil.example"]
    async with own_worker() as worker:
        assert " 101 " not in await answer(worker, request("/" + worker.token, *headers))


async def test_a_peer_that_never_says_what_it_wants_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets that only knock would use up all descriptors (A37)."""
    monkeypatch.setattr(limits, "REQUEST_HEADER_SECONDS", 0.2)
    async with own_worker() as worker:
        assert (await answer(worker, "GET / HTTP/1.1\r\n")).startswith("HTTP/1.1 408 ")


async def test_a_head_without_end_is_refused() -> None:
    """A stranger could fill our memory before saying who it is (A37)."""
    async with own_worker() as worker:
        place = urlsplit(worker.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(b"GET / HTTP/1.1\r\nX: ")
        try:
            for _ in range(2_000):
                writer.write(b"x" * 1024)
                await writer.drain()
        except ConnectionError:
            pass
        else:
            assert b" 431 " in await within(reader.readline())
        writer.close()


# -- sizes -------------------------------------------------------------------------------------------------------------


async def test_a_frame_of_16_mib_is_taken_and_one_byte_more_ends_the_connection() -> None:
    """A long assignment would be refused; or a stranger's gigabyte collected (frames: order and bounds)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frame = '{"kind": "run", "assignment": "x", "messages": ["%s"]}'
        filling = limits.LINK_FRAME_BYTES - len(frame % "")
        await peer.socket.send_str(frame % ("y" * filling))
        assert (await peer.terminal())[1]["result"] == "echo: x"
        await peer.socket.send_str(frame % ("y" * (filling + 1)))
        assert await peer.closed() == 1009


async def test_a_size_that_is_only_announced_ends_the_connection_at_once() -> None:
    """We would wait for, and make room for, what never comes (A38)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        peer.socket._writer.transport.write(b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4))
        assert await peer.closed() == 1009


VIOLATIONS = {
    "unmasked": b"\x81\x02{}",
    "reserved bit": b"\xc1\x82\x00\x00\x00\x00{}",
    "unknown opcode": b"\x83\x80\x00\x00\x00\x00",
    "continuation of nothing": b"\x80\x80\x00\x00\x00\x00",
    "ping in fragments": b"\x09\x80\x00\x00\x00\x00",
    "message within a message": b"\x01\x80\x00\x00\x00\x00\x81\x80\x00\x00\x00\x00",
}


@pytest.mark.parametrize("name", VIOLATIONS)
async def test_who_does_not_speak_websocket_hurts_nobody_else(name: str) -> None:
    """One broken client would take the others' runs with it (B50 B56)."""
    async with own_worker() as worker, PlainPeer(worker.url) as good, PlainPeer(worker.url) as bad:
        await good.run("a __sleep_ms:50 b")
        bad.socket._writer.transport.write(VIOLATIONS[name])
        assert await bad.closed() == 1002
        assert (await good.terminal())[1]["result"] == "echo: a b"


# -- where it listens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0", "nonsense", "127.0.0.1:x"])
async def test_without_tls_only_this_machine_is_listened_on(listen: str) -> None:
    """Assignments, answers and the secret would cross the network for anyone to read."""
    with pytest.raises(Invalid):
        await serve_worker(WorkerOptions(mode="one", listen=listen), EchoExecutor)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    directory = tmp_path_factory.mktemp("tls")
    cert, key = directory / "cert.pem", directory / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days"]
    make += ["2", "-subj", "/CN=worker", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(cert), "-keyout"]
    subprocess.run([*make, str(key)], check=True, capture_output=True)
    return cert, key


async def test_with_a_certificate_it_speaks_tls(certificate: tuple[Path, Path]) -> None:
    """A worker on another machine could not be used (frames: serving)."""
    cert, key = certificate
    context = ssl.create_default_context(cafile=str(cert))
    async with own_worker(tls_cert=cert, tls_key=key) as worker:
        assert re.match(r"wss://127\.0\.0\.1:\d+/", worker.url)
        async with PlainPeer(worker.url, ssl=context) as peer:
            assert (await peer.ask("hidden words"))[1]["result"] == "echo: hidden words"
        with pytest.raises(aiohttp.ClientError):
            async with PlainPeer(worker.url.replace("wss:", "ws:")):
                pass


async def _speak_no_tls(worker: WorkerAddress) -> None:
    place = urlsplit(worker.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request().encode())
    with contextlib.suppress(ConnectionError):
        await within(reader.read())
    writer.close()


async def _hang_up(worker: WorkerAddress) -> None:
    place = urlsplit(worker.url)
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.close()


async def _trust_nobody(worker: WorkerAddress) -> None:
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        async with PlainPeer(worker.url, ssl=ssl.create_default_context()):
            pass


@pytest.mark.parametrize("fail", [_speak_no_tls, _hang_up, _trust_nobody])
async def test_failed_handshakes_use_up_no_place(
    fail: Callable[[WorkerAddress], Awaitable[None]],
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strangers without the secret could make a worker refuse everybody, and keep it from ending (B50 A37)."""
    monkeypatch.setattr(limits, "WORKER_CONNECTIONS", 10)
    cert, key = certificate
    async with own_worker(tls_cert=cert, tls_key=key) as worker:
        for _ in range(limits.WORKER_CONNECTIONS):
            await fail(worker)
        context = ssl.create_default_context(cafile=str(cert))
        async with PlainPeer(worker.url, ssl=context) as peer:
            assert (await peer.ask("still there"))[1]["result"] == "echo: still there"
        begun = time.monotonic()
    assert time.monotonic() - begun < limits.LINK_CLOSE_SECONDS


async def test_a_worker_does_not_wait_for_handshakes_under_way(certificate: tuple[Path, Path]) -> None:
    """A stranger that connects and says nothing could keep a worker from ending (B50)."""
    cert, key = certificate
    async with own_worker(tls_cert=cert, tls_key=key) as worker:
        place = urlsplit(worker.url)
        silent = [await asyncio.open_connection(place.hostname, place.port) for _ in range(3)]
        context = ssl.create_default_context(cafile=str(cert))
        async with PlainPeer(worker.url, ssl=context) as peer:  # who came after them is served: they were accepted
            assert (await peer.ask("x"))[1]["status"] == "completed"
        begun = time.monotonic()
    assert time.monotonic() - begun < limits.LINK_CLOSE_SECONDS
    for reader, writer in silent:
        with contextlib.suppress(ConnectionError):
            assert await within(reader.read()) == b""
        writer.close()


async def test_a_handshake_takes_a_bounded_time_and_only_so_many_are_under_way(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets that only knock would use up all descriptors (A37)."""
    monkeypatch.setattr(limits, "WORKER_CONNECTIONS", 2)
    monkeypatch.setattr(limits, "REQUEST_HEADER_SECONDS", 0.3)
    cert, key = certificate
    async with own_worker(tls_cert=cert, tls_key=key) as worker:
        place = urlsplit(worker.url)
        begun = time.monotonic()
        silent = [await asyncio.open_connection(place.hostname, place.port) for _ in range(3)]

        async def let_go(reader: asyncio.StreamReader) -> float:
            with contextlib.suppress(ConnectionError):
                assert await within(reader.read()) == b""
            return time.monotonic() - begun

        times = sorted(await asyncio.gather(*(let_go(reader) for reader, _ in silent)))
        for _, writer in silent:
            writer.close()
        assert times[0] > 0.25
        assert times[2] > 0.55  # the third waited until one of the first two was let go
