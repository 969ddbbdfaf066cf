"""The way in: one client of one server.

```python
async with Client("http://127.0.0.1:4747", token) as client:
    workspace = await client.open("/home/me/project")
    session = await workspace.create_session("First steps")
    accepted = await workspace.prompt(session.id, "What is in this directory?")
    result = await workspace.wait(accepted.run_id)
    print(result.text)
```
"""

import os
from pathlib import Path
from types import TracebackType

from windlass import ids, limits
from windlass.client.transport import Transport, segment
from windlass.client.workspace import WorkspaceHandle
from windlass.errors import BadRequest
from windlass.wire.http import CreateWorkspace, Version, Workspace


class Client:
    """Speaks for one client id: everything it does carries that id, and its claims are released together by `retire`.

    `url` is `http://...`, `https://...` or `unix:/path` (no token needed there). Requests for which doing it twice is
    doing it once are sent again, `retries` times at most, when the connection breaks or the server is busy.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        client_id: str | None = None,
        *,
        retries: int = limits.CLIENT_RETRIES,
    ) -> None:
        self.client_id = ids.new_client_id() if client_id is None else client_id
        if not ids.is_client_id(self.client_id):
            raise BadRequest(f"{client_id!r} is no client id; it is a UUID such as {ids.new_client_id()}.")
        self.transport = Transport(url, token, self.client_id, retries)

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

    async def workspaces(self) -> list[Workspace]:
        """The workspaces that are open."""
        return await self.transport.call("GET", "/workspaces", list[Workspace])

    async def health(self) -> None:
        """Return when the server is well; raise what is wrong otherwise. Needs no token."""
        await self.transport.call("GET", "/health", type(None))

    async def version(self) -> Version:
        return await self.transport.call("GET", "/version", Version)

    async def retire(self) -> None:
        """Say goodbye for good: all claims of this client go at once, and a late create of its is refused."""
        await self.transport.call("DELETE", f"/clients/{segment(self.client_id)}", type(None), repeatable=True)


def _absolute(path: str | os.PathLike[str]) -> str:
    # Not abspath: it takes `link/..` for the directory of the link, the kernel for the parent of what it points to.
    return str(Path(path).absolute())
