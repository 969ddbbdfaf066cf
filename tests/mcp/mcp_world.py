"""Real MCP servers in processes of their own, below a real guardian; what they do is seen by the test."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Self

from windlass.guardian.handle import Guardian
from windlass.mcp.hub import Hub
from windlass.mcp.servers import Servers
from windlass.mcp.spec import ServerSpec
from windlass.wire.delegation import CallMcpTool, ListMcpTools, McpOutput, McpTool
from windlass.wire.mcp import McpState

HERE = Path(__file__).parent
SECONDS = 30.0  # the longest a test waits for anything


class McpWorld:
    """`servers` are those of one workspace, at `path`. `told` is every change of a state, in order."""

    def __init__(self, *specs: ServerSpec, path: str = "/tmp") -> None:
        self._specs = specs
        self._path = path
        self.told: list[McpState] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.guardian = await Guardian.start()
        self.hub = Hub(self.guardian, {"PATH": os.environ["PATH"]}, self._specs)
        self.servers: Servers = self.hub.open(self._path, self._tell)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.hub.aclose()
        await self.guardian.aclose()

    def _tell(self, state: McpState) -> None:
        self.told.append(state)
        self._changed.set()

    async def tools(self) -> list[McpTool]:
        reply = await asyncio.wait_for(self.servers.answer(ListMcpTools()), SECONDS)
        return list(reply.mcp_tools)

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.tools()]

    async def call(self, tool: str, server: str = "a", **arguments: Any) -> McpOutput:
        reply = await asyncio.wait_for(self.servers.answer(CallMcpTool(server, tool, arguments)), SECONDS)
        assert reply.mcp_output is not None, reply.error
        return reply.mcp_output

    async def until(self, state: str, after: int = 0, server: str = "") -> McpState:
        """The first time this state was told, of any server or this one, not counting the first `after` changes."""
        async with asyncio.timeout(SECONDS):
            while True:
                for told in self.told[after:]:
                    if told.state == state and server in ("", told.name):
                        return told
                self._changed.clear()
                await self._changed.wait()


def plain(name: str, directory: Path, *options: str, **fields: Any) -> ServerSpec:
    """A server that is hand-written, and starts in a moment."""
    return ServerSpec(name, (sys.executable, "-S", str(HERE / "plain_server.py"), str(directory), *options), **fields)


def real(name: str, directory: Path, *options: str, **fields: Any) -> ServerSpec:
    """A server written with the SDK."""
    fields.setdefault("connect_seconds", 60.0)  # its library takes seconds to load on a busy machine
    return ServerSpec(name, (sys.executable, str(HERE / "a_server.py"), str(directory), *options), **fields)


async def written(file: Path) -> str:
    """What a server wrote into a file, once it did."""
    async with asyncio.timeout(SECONDS):
        while True:
            text = _text(file)
            if text.endswith("\n"):
                return text
            await asyncio.sleep(0.01)  # another process writes it: there is nothing to await


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status != "Z"
