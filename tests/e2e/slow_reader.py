"""A stream whose reader stops reading: a bare socket with a small buffer, and a parser for what it reads later."""

import asyncio
import json
import socket
from collections.abc import Callable

from windlass.testing.server_process import Api, Event, until


class SlowReader:
    """Attached from construction. Nothing is read until `read_until`."""

    def __init__(self, api: Api, after: str, receive_buffer: int = 4096) -> None:
        host, _, port = api.server.url.removeprefix("http://").rpartition(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.connect((host, int(port)))
        path = f"/v1/workspaces/{api.workspace_id}/events?client_id={api.client_id}&after={after}"
        request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {api.token}\r\n\r\n"
        self._socket.sendall(request.encode())
        self._socket.setblocking(False)
        self._raw = bytearray()
        self._text = bytearray()
        self._in_body = False
        self.events: list[Event] = []

    def __enter__(self) -> "SlowReader":
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    async def attached(self) -> None:
        """Return when the server has begun to answer; reads nothing."""

        def has_come() -> bool:
            try:
                return bool(self._socket.recv(1, socket.MSG_PEEK))
            except BlockingIOError:
                return False

        await until(has_come, "the stream has begun")

    async def read_until(self, enough: Callable[[Event], bool]) -> list[Event]:
        """Read on until an event satisfies; everything that came."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            while not any(enough(event) for event in self._parse()):
                received = await loop.sock_recv(self._socket, 256 * 1024)
                assert received, "the server closed the stream"
                self._raw += received
        return self.events

    def _parse(self) -> list[Event]:
        self._unchunk()
        *blocks, rest = bytes(self._text).split(b"\n\n")
        self._text = bytearray(rest)
        new = []
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
            if b"data" in fields:
                new.append(Event(id=fields.get(b"id", b"").decode(), data=json.loads(fields[b"data"])))
        self.events += new
        return new

    def _unchunk(self) -> None:
        if not self._in_body:
            _, separator, body = bytes(self._raw).partition(b"\r\n\r\n")
            if not separator:
                return
            self._in_body, self._raw = True, bytearray(body)
        position = 0
        while (end := self._raw.find(b"\r\n", position)) >= 0:
            size = int(self._raw[position:end], 16)
            if len(self._raw) < end + 2 + size + 2:
                break
            self._text += self._raw[end + 2 : end + 2 + size]
            position = end + 2 + size + 2
        del self._raw[:position]
