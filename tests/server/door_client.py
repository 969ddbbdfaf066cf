"""Requests as nobody's library would send them: any header, any credential, from any loopback address."""

import asyncio
import contextlib
import io
import itertools
import json
import os
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from windlass.testing.server_process import WAIT_SECONDS, ServerProcess

_numbers = itertools.count(os.getpid() * 251)


class Answer(NamedTuple):
    status: int
    headers: "aiohttp.typedefs.CIMultiDictProxy[str]"
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return str(self.json["message"])


class DoorClient:
    """Sends from a loopback address of its own, so that its wrong guesses are counted against no other test."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        number = next(_numbers)
        address = f"127.{1 + number // 64516 % 250}.{1 + number // 254 % 254}.{1 + number % 254}"
        timeout = aiohttp.ClientTimeout(total=WAIT_SECONDS)
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        # No cookie jar: a cookie is sent exactly when a test says so.
        jar = aiohttp.DummyCookieJar()
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=jar)

    async def __aenter__(self) -> "DoorClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        kind: str | None = "application/json",
    ) -> Answer:
        """One request. The body of a stream is not read: its status is the answer."""
        sent = {**({"Authorization": f"Bearer {token}"} if token is not None else {}), **(headers or {})}
        if body is not None and kind is not None:
            sent.setdefault("Content-Type", kind)
        url = URL(self.server.url + target, encoded=True)
        # Without this the library makes up a content type where a test wants none.
        skip = {"Content-Type", "Accept-Encoding"}
        data = io.BytesIO(body) if body else body  # the library warns of large bytes
        options: dict[str, Any] = {"data": data, "headers": sent, "allow_redirects": False, "skip_auto_headers": skip}
        async with self._session.request(method, url, **options) as response:
            is_stream = response.content_type == "text/event-stream"
            return Answer(response.status, response.headers, "" if is_stream else await response.text())


class RawAnswer(NamedTuple):
    status: int
    head: str
    body: str


async def raw(server: ServerProcess, request: bytes, *, head_only: bool = False) -> RawAnswer:
    """What the server answers to these bytes, read until it closes (so ask it to: `Connection: close`)."""
    address = urlsplit(server.url)
    return await raw_to(str(address.hostname), int(address.port or 0), request, head_only=head_only)


async def raw_to(host: str, port: int, *pieces: bytes, head_only: bool = False) -> RawAnswer:
    """The same at any address. A bare socket: asyncio's streams drop what came before a reset."""
    with await connected(host, port) as sock:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):  # it may refuse before it has read everything
            for piece in pieces:
                await loop.sock_sendall(sock, piece)
        return await received(sock, head_only)


async def connected(host: str, port: int) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (host, port))
    return sock


async def received(sock: socket.socket, head_only: bool = False) -> RawAnswer:
    """What comes until the other end closes (or, `head_only`, until the head is there)."""
    content = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(WAIT_SECONDS):
            while chunk := await asyncio.get_running_loop().sock_recv(sock, 65536):
                content += chunk
                if head_only and b"\r\n\r\n" in content:
                    break
    return parsed(content)


def parsed(content: bytes) -> RawAnswer:
    head, _, body = content.decode("latin-1").partition("\r\n\r\n")
    return RawAnswer(int(head.split(" ", 2)[1]) if head else 0, head, body)
