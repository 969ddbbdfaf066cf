"""Clients of the event stream, as many as are asked for, in one process that does little enough to keep up.

They count what comes (bytes, events, tokens) and how old each token is. A stalled client asks for the stream and then
does not read. Commands: `connect`, `reset`, `report`, `leave`.
"""

import asyncio
import resource
import socket
import time
from collections import Counter

from bench import directive
from bench.child import Answer, listen, obey
from bench.rows import percentile

_AT_ONCE = 100  # connections being made; more than the listener's backlog would be a test of the kernel
_CONNECT_SECONDS = 30.0
_STALLED_RECEIVE_BYTES = 4096
_AGES = 500_000  # kept; more would make the crowd the slowest of all


class Tally:
    """What all readers saw since the last reset."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.bytes = self.events = self.tokens = 0
        self.ages: list[int] = []

    def report(self) -> Answer:
        ages = sorted(self.ages)
        return {
            "seconds": time.monotonic() - self.began,
            "bytes": self.bytes,
            "events": self.events,
            "tokens": self.tokens,
            "p50_ms": percentile(ages, 0.50) / 1000,
            "p99_ms": percentile(ages, 0.99) / 1000,
            "max_ms": percentile(ages, 1.0) / 1000,
        }


class Crowd:
    def __init__(self) -> None:
        self.tally = Tally()
        self.transports: list[asyncio.Transport] = []
        self.lost = 0

    async def act(self, command: Answer) -> Answer:
        match command["what"]:
            case "connect":
                return await self._connect(command)
            case "reset":
                self.tally = Tally()
                return {}
            case "report":
                return {**self.tally.report(), "lost": self.lost, "connected": len(self.transports)}
            case "leave":
                for transport in self.transports:
                    transport.abort()
                self.transports.clear()
                return {}
        raise ValueError(command["what"])

    async def _connect(self, command: Answer) -> Answer:
        """One client for each path; the answer counts the HTTP statuses (0: no answer at all)."""
        turn = asyncio.Semaphore(_AT_ONCE)
        port, token, stalled = command["port"], command["token"], command["stalled"]

        async def one(path: str) -> int:
            async with turn:
                return await self._join(port, path, token, stalled)

        statuses = Counter(await asyncio.gather(*(one(path) for path in command["paths"])))
        return {"statuses": {str(status): count for status, count in statuses.items()}}

    async def _join(self, port: int, path: str, token: str, stalled: bool) -> int:
        connection = socket.socket()
        if stalled:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _STALLED_RECEIVE_BYTES)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.sock_connect(connection, ("127.0.0.1", port))
                transport, reader = await loop.create_connection(lambda: Reader(self), sock=connection)
                head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
                transport.write(head.encode())
                status = await reader.status
        except (OSError, TimeoutError):
            connection.close()
            return 0
        if status != 200:
            transport.abort()
            return status
        if stalled:
            transport.pause_reading()
        self.transports.append(transport)
        return status


class Reader(asyncio.Protocol):
    """One stream. Events without an id are text as it comes; facts repeat it and are not looked into."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._rest = b""
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.lost += 1
        if not self.status.done():
            self.status.set_result(0)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns() // 1000
        if not self.status.done():
            self.status.set_result(int(data[9:12]))
        tally = self._crowd.tally
        tally.bytes += len(data)
        *blocks, self._rest = (self._rest + data).split(b"\n\n") if self._rest else data.split(b"\n\n")
        for block in blocks:
            if b"id: " in block[:24]:  # after the size of an HTTP chunk, if one begins here
                continue
            stamps = directive.STAMP.findall(block)
            if stamps:
                tally.events += 1
                tally.tokens += len(stamps)
                if len(tally.ages) < _AGES:
                    tally.ages += [(now - int(stamp)) % directive.STAMP_MODULUS for stamp in stamps]


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd: list[Crowd] = []

    async def start() -> int:
        crowd.append(Crowd())
        return await listen(asyncio.Protocol)

    async def act(command: Answer) -> Answer:
        return await crowd[0].act(command)

    obey(start, act)


if __name__ == "__main__":
    main()
