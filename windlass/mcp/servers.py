"""The MCP servers of one workspace: what a run asks of them, all at the same time, and what clients are told."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from windlass import limits
from windlass.mcp.place import Place
from windlass.mcp.server import Server, Tell
from windlass.mcp.spec import ServerSpec
from windlass.wire.delegation import CallMcpTool, ListMcpTools, McpTool, OwnerReply
from windlass.wire.mcp import McpState

logger = structlog.get_logger("windlass.mcp")


class Servers:
    """No server starts before the first run asks. They are this workspace's alone: nothing of one reaches another."""

    def __init__(
        self,
        place: Place,
        specs: Mapping[str, ServerSpec],
        tell: Tell,
        on_close: "Callable[[Servers], None]",
        on_stop: "Callable[[asyncio.Task[None]], None]",
    ) -> None:
        self._place = place
        self._tell = tell
        self._on_close = on_close
        self._on_stop = on_stop
        self._servers: dict[str, Server] = {}
        self._closed = False
        self.configure(specs)

    @property
    def states(self) -> list[McpState]:
        return [self._servers[name].state for name in sorted(self._servers)]

    async def answer(self, request: ListMcpTools | CallMcpTool) -> OwnerReply:
        """What a run asks for. Cancelling the caller ends its call at the server."""
        match request:
            case ListMcpTools():
                return OwnerReply(mcp_tools=await self._tools())
            case CallMcpTool():
                server = self._servers.get(request.server)
                if server is None or server.spec.disabled:
                    return OwnerReply(error=f"There is no MCP server {request.server!r} (any more).")
                return OwnerReply(mcp_output=await server.call(request.tool, request.arguments))

    async def _tools(self) -> tuple[McpTool, ...]:
        """Of all servers that are there within their time; the slowest of them decides how long that takes."""
        servers = [self._servers[name] for name in sorted(self._servers) if not self._servers[name].spec.disabled]
        found = await asyncio.gather(*(server.tools() for server in servers))
        told: list[McpTool] = []
        room = limits.MCP_TOOLS_BYTES
        for tools in found:
            for tool in tools:
                room -= len(msgspec.json.encode(tool))
                if room < 0:
                    logger.warning("the MCP servers offer more than a run can be told", told=len(told))
                    return tuple(told)
                told.append(tool)
        return tuple(told)

    def configure(self, specs: Mapping[str, ServerSpec]) -> None:
        """Stop what changed or is gone; what is new, or failed, is started when the next run asks."""
        if self._closed:
            return
        for name in [name for name, server in self._servers.items() if server.spec != specs.get(name)]:
            self._stop(self._servers.pop(name))
        for name, spec in specs.items():
            if name in self._servers:
                self._servers[name].try_again()
            else:
                self._servers[name] = Server(spec, self._place, self._tell)

    def close(self) -> None:
        """The workspace closes: stop all of them, without waiting for it."""
        if not self._closed:
            self._closed = True
            for server in self._servers.values():
                self._stop(server)
            self._on_close(self)

    def _stop(self, server: Server) -> None:
        ending = server.close()
        if ending is not None:
            self._on_stop(ending)
