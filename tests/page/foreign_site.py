"""Someone else's web site on this machine: serves an empty page for every path, and remembers who asked for what."""

import asyncio
from typing import Self

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
_PAGE = b"<!doctype html><title>elsewhere</title><link rel=icon href='data:,'><p>Nothing to see here.</p>"
_REQUEST_BYTES = 64 * 1024  # the head of a request with a long cookie


class ForeignSite:
    """Listens on a free port of 127.0.0.1 while entered; `asked` are the request lines that came."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_REQUEST_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.partition(b"\r\n")[0].decode("latin-1"))
            writer.write(_HEAD + _PAGE)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a browser opens connections ahead of need, and drops them
        finally:
            writer.close()
