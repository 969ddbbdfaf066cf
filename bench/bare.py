"""The least a program could do: pass what the provider says on to every client. What we cost is compared with this.

It splits lines and writes them; it keeps nothing, checks nothing and knows nothing.
"""

import asyncio

from bench.child import Answer, listen, obey

_REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b"
)
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
_HEALTH = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"

_readers: list[asyncio.Transport] = []
_upstreams: list[asyncio.BaseTransport] = []


class Downstream(asyncio.Protocol):
    """A client: told everything from its first request on, or answered that we are well."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if b"/v1/health" in data:
            self._transport.write(_HEALTH)
            return
        self._transport.write(_STREAM_HEAD + b"retry: 1000\n\n")
        _readers.append(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport in _readers:
            _readers.remove(self._transport)


class Upstream(asyncio.Protocol):
    """One stream of the provider."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.write(_REQUEST % (len(self._body), self._body))

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                for reader in _readers:
                    reader.write(line + b"\n\n")


async def _start() -> int:
    return await listen(Downstream)


async def _act(command: Answer) -> Answer:
    """`stream`: open that many streams at the provider."""
    body = command["prompt"].encode()
    loop = asyncio.get_running_loop()
    for _ in range(command["streams"]):
        transport, _protocol = await loop.create_connection(lambda: Upstream(body), "127.0.0.1", command["port"])
        _upstreams.append(transport)
    return {}


if __name__ == "__main__":
    obey(_start, _act)
