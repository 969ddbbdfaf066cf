"""HTTP by hand, for what is timed: a library's own milliseconds must not be in the figures."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from bench.world import World

_WAIT_SECONDS = 30.0


class Wire:
    """One kept-alive connection; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._head = f"host: {host}\r\nauthorization: Bearer {token}\r\n"

    async def request(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        kind = "content-type: application/json\r\n" if data else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}content-length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        async with asyncio.timeout(_WAIT_SECONDS):
            answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            length = int(answer.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            return int(answer[9:12]), await self._reader.readexactly(length)

    async def timed(self, method: str, path: str, body: Any = None, *, expect: int) -> tuple[float, float, Any]:
        """When it was sent, how many milliseconds the answer took, and the answer."""
        sent = time.monotonic()
        status, data = await self.request(method, path, body)
        took = (time.monotonic() - sent) * 1000
        if status != expect:
            raise RuntimeError(f"{method} {path}: {status} {data[:200]!r}")
        return sent, took, json.loads(data) if data else None


@contextlib.asynccontextmanager
async def wire(port: int, token: str = "") -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024 * 1024)
    try:
        yield Wire(reader, writer, f"127.0.0.1:{port}", token)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Tap(asyncio.Protocol):
    """The event stream with the time at which each event came."""

    def __init__(self) -> None:
        self._rest = b""
        self._events: list[tuple[float, bytes]] = []
        self._waiting: tuple[tuple[bytes, ...], asyncio.Future[float]] | None = None

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        self._events += [(now, block) for block in blocks]
        if self._waiting is not None:
            needles, found = self._waiting
            arrived = self._find(needles)
            if arrived is not None and not found.done():
                found.set_result(arrived)

    async def until(self, *needles: bytes) -> float:
        """When the first event came that has all of these in it; it and what came before it are forgotten."""
        arrived = self._find(needles)
        if arrived is not None:
            return arrived
        found: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting = (needles, found)
        try:
            return await asyncio.wait_for(found, _WAIT_SECONDS)
        finally:
            self._waiting = None

    def _find(self, needles: tuple[bytes, ...]) -> float | None:
        for index, (arrived, block) in enumerate(self._events):
            if all(needle in block for needle in needles):
                del self._events[: index + 1]
                return arrived
        return None


@contextlib.asynccontextmanager
async def tap(here: World) -> AsyncIterator[Tap]:
    """A stream with deltas of the workspace, greeted."""
    loop = asyncio.get_running_loop()
    transport, reader = await loop.create_connection(Tap, "127.0.0.1", here.port)
    try:
        transport.write(here.stream_request())
        await reader.until(b'"hello"')
        yield reader
    finally:
        transport.close()
