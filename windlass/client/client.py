"""The way in: one client of one server.

```python
async with connect() as client:
    workspace = await client.open(".")
    result = await workspace.ask("What is in this directory?")
    print(result.text)
```
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

from windlass import ids, limits
from windlass.client.discovery import URL_VARIABLE, find_server
from windlass.client.transport import Transport, segment
from windlass.client.workspace import WorkspaceHandle
from windlass.config import default_data_dir
from windlass.errors import BadRequest, WindlassError
from windlass.wire.http import CreateWorkspace, MarkdownHtml, MarkdownTexts, Ticket, TicketRequest, Version, Workspace


class Client:
    """Speaks for one client id: everything it does carries that id, and its claims are released together by `retire`.

    `url` is `http://...`, `https://...` or `unix:/path` (no token needed there). Requests for which doing it twice is
    doing it once are sent again, `retries` times at most, when the connection breaks or the server is busy.
    `certificate` (PEM): the only one that is trusted, whatever name it is for; "" leaves that to the authorities that
    the system knows.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        client_id: str | None = None,
        *,
        retries: int = limits.CLIENT_RETRIES,
        certificate: str = "",
    ) -> None:
        self.client_id = ids.new_client_id() if client_id is None else client_id
        if not ids.is_client_id(self.client_id):
            raise BadRequest(f"{client_id!r} is no client id; it is a UUID such as {ids.new_client_id()}.")
        self.transport = Transport(url, token, self.client_id, retries, certificate)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Claims end by the server's grace, or at once with `retire` before this."""
        await self.transport.close()

    async def open(self, path: str | os.PathLike[str], yolo: bool = False) -> WorkspaceHandle:
        """Open the workspace of a directory, or join it. On one that is already open the first opener's flags stay."""
        absolute = _absolute(path)
        request = CreateWorkspace(path=absolute, client_id=self.client_id, yolo=yolo)
        return await WorkspaceHandle.open(self.transport, request)

    async def workspaces(self, all: bool = False) -> list[Workspace]:
        """The workspaces that are open; with `all` also those that were, the one in which something happened last
        first."""
        return await self.transport.call("GET", "/workspaces", list[Workspace], query={"all": "1" if all else None})

    async def markdown(self, texts: Sequence[str]) -> list[str]:
        """Each text as HTML that is safe to put into a page."""
        body = MarkdownTexts(list(texts))
        answer = await self.transport.call("POST", "/markdown", MarkdownHtml, body=body, repeatable=True)
        return answer.html

    async def health(self) -> None:
        """Return when the server is well; raise what is wrong otherwise. Needs no token."""
        await self.transport.call("GET", "/health", type(None))

    async def version(self) -> Version:
        return await self.transport.call("GET", "/version", Version)

    async def ticket(self, scope: Literal["operate", "read"] = "operate") -> Ticket:
        """A single-use ticket: a browser that opens one of its `urls` may do as much, and no more than this client."""
        return await self.transport.call("POST", "/tickets", Ticket, body=TicketRequest(scope))

    async def retire(self) -> None:
        """Say goodbye for good: all claims of this client go at once, and a late create of its is refused."""
        await self.transport.call("DELETE", f"/clients/{segment(self.client_id)}", type(None), repeatable=True)


@asynccontextmanager
async def connect(
    url: str | None = None,
    *,
    token_file: Path | None = None,
    data_dir: Path | None = None,
    client_id: str | None = None,
    start: bool = False,
) -> AsyncIterator[Client]:
    """A client of the server that `find_server` finds: the one that `url` or WINDLASS_URL names, else the local one.

    `start`: where no server was named and none is running, one is started, which leaves when its last client has. On
    leaving, the client says goodbye: what it held open is released at once, and its runs go on. Raises
    ServerNotFound, with what to do, when there is no server.
    """
    if start and not url and not os.environ.get(URL_VARIABLE):
        from windlass.client import starting  # it is made of clients itself

        directory = data_dir or default_data_dir()
        if await starting.answering(directory) is None:
            await starting.start(directory)
    # In a thread: a file is read, and the data directory may be on a network.
    address = await asyncio.to_thread(find_server, data_dir, url, token_file)
    async with Client(address.url, address.token, client_id, certificate=address.certificate) as client:
        try:
            yield client
        finally:
            # A server that is gone meanwhile must not turn finished work into a failure, nor hold it up.
            with suppress(WindlassError, TimeoutError):
                async with asyncio.timeout(limits.CLIENT_GOODBYE_SECONDS):
                    await client.retire()


def _absolute(path: str | os.PathLike[str]) -> str:
    # Not abspath: it takes `link/..` for the directory of the link, the kernel for the parent of what it points to.
    return str(Path(path).absolute())
