"""The door and the protocol under it in this process, on a real socket, so that a test can make their limits small."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from windlass.server.app import create_app
from windlass.server.door import Door
from windlass.server.listener import Listener
from windlass.server.services import Services
from windlass.server.tokens import TokenStore


class Address(NamedTuple):
    host: str
    port: int
    token: str

    def head(self, method: str, target: str, *lines: str) -> bytes:
        """The head of a request with a valid token, and these header lines."""
        first = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.token}"]
        return ("\r\n".join([*first, *lines]) + "\r\n\r\n").encode()


@asynccontextmanager
async def listening(data_dir: Path, registry: Any = None) -> AsyncIterator[Address]:
    """Routes behind a door, with `registry` behind the routes (None: every route that needs it breaks)."""
    tokens = TokenStore(data_dir)
    services = Services(registry, tokens, *[None] * 4)  # type: ignore[arg-type]
    listener = Listener("127.0.0.1:0", Door(create_app(services), tokens))
    url = urlsplit(await listener.start())
    try:
        yield Address(str(url.hostname), int(url.port or 0), tokens.create("test", "operate"))
    finally:
        await listener.stop(5)
