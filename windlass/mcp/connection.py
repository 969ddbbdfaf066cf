"""A session with one MCP server, through the official SDK.

The SDK and what it needs take a second to import: only `server.py` imports this file, in a thread, when a run first
asks for tools.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.shared.exceptions import MCPError

from windlass import __version__, limits
from windlass.mcp.ending import Ending
from windlass.mcp.http import http_streams
from windlass.mcp.last_words import LastWords
from windlass.mcp.place import Place
from windlass.mcp.results import output_of, tools_of
from windlass.mcp.spec import ServerSpec
from windlass.mcp.stdio import stdio_streams
from windlass.wire.delegation import McpOutput, McpTool

# They log messages and addresses whole, with the keys in them (A39).
for _name in ("mcp", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False
_CLIENT = types.Implementation(name="windlass", version=__version__)
_UNKNOWN = "Whether it did what was asked is not known: look before you call it again."


@contextlib.asynccontextmanager
async def connect(spec: ServerSpec, place: Place, ending: Ending, words: LastWords) -> AsyncIterator["Connection"]:
    """Start or reach the server and introduce ourselves. To be entered and left in one task.

    Raises OSError, or whatever broke, perhaps in a group of exceptions; see `explain`.
    """
    connection = Connection(spec, place.path, ending)
    async with _streams(spec, place, ending, words) as (read, write):
        session = ClientSession(
            read,
            write,
            list_roots_callback=connection.tell_roots,
            message_handler=connection.hear,
            client_info=_CLIENT,
        )
        try:
            async with session:
                await _introduce(session)
                connection.session = session
                yield connection
        finally:
            await connection.forsake_calls()


def _streams(
    spec: ServerSpec, place: Place, ending: Ending, words: LastWords
) -> "AbstractAsyncContextManager[TransportStreams]":
    if spec.url:
        return http_streams(spec, ending)
    argv = [part.replace("{workspace}", place.path) for part in spec.command]
    environment = {**place.environment, "WINDLASS_WORKSPACE": place.path, **spec.env}
    return stdio_streams(place.spawner, argv, environment, ending, words)


async def _introduce(session: ClientSession) -> None:
    try:
        await session.initialize()
    except MCPError as error:
        if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()  # it speaks only versions without a handshake


class Connection:
    """Lists and calls the tools of one server. Calls may come from any task; `ending` happens when it is lost."""

    session: ClientSession

    def __init__(self, spec: ServerSpec, workspace_path: str, ending: Ending) -> None:
        self.ending = ending
        self.stale = asyncio.Event()  # its tools changed, it says
        self._spec = spec
        self._workspace = workspace_path
        self._calls: set[asyncio.Task[McpOutput]] = set()

    async def tools(self) -> tuple[McpTool, ...]:
        """What it offers now. Raises what `explain` explains."""
        self.stale.clear()
        listed: list[types.Tool] = []
        cursor: str | None = None
        for _ in range(limits.MCP_TOOL_PAGES):
            page = await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)
            listed += page.tools
            cursor = page.next_cursor
            if not cursor or len(listed) > 10 * limits.MCP_TOOLS:
                break
        return tools_of(self._spec, listed)

    async def call(self, tool: str, arguments: dict[str, Any]) -> McpOutput:
        """Call a tool. When the caller is cancelled the server is told so, and its answer is not waited for."""
        if len(self._calls) >= limits.MCP_CALLS:
            return _failed(f"{limits.MCP_CALLS} calls of this MCP server are going on. Call it again when some ended.")
        # A task of its own: telling a server that does not read may take seconds, and a cancel must not wait for that.
        work = asyncio.create_task(self._call(tool, arguments), name=f"mcp call {self._spec.name}")
        self._calls.add(work)
        work.add_done_callback(self._calls.discard)
        try:
            done, _ = await asyncio.wait({work}, timeout=self._spec.call_seconds)
        finally:
            work.cancel()
        if not done:
            return _failed(f"The MCP server did not answer within {self._spec.call_seconds:g} s. {_UNKNOWN}")
        return work.result()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> McpOutput:
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        try:
            # Not `call_tool`: it checks results against a schema of the server's, whose patterns can take hours.
            return output_of(await self.session.send_request(request, types.CallToolResult))
        except Exception as error:  # the border of this task: whatever a server answers, the run goes on
            if isinstance(error, MCPError) and not self._is_lost(error):
                return _failed(f"The MCP server refused: {explain(error, self._spec)}")
            why = self.ending.reason or explain(error, self._spec)
            return _failed(f"The MCP server gave no answer: {why} {_UNKNOWN}")

    def _is_lost(self, error: MCPError) -> bool:
        """Whether it is the SDK that says so: a server may use the same number for something else."""
        is_closed = error.code == types.CONNECTION_CLOSED and error.error.message == "Connection closed"
        return self.ending.near or is_closed

    async def hear(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.stale.set()

    async def tell_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Which directory this is about, for servers that ask."""
        path = Path(self._workspace)
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri(), name=path.name)])  # type: ignore[arg-type]

    async def forsake_calls(self) -> None:
        """The session is over: calls that waited have been told, and end by themselves."""
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=limits.MCP_CLOSE_SECONDS)


def explain(error: BaseException, spec: ServerSpec) -> str:
    """One sentence of what went wrong. What a server or the configuration put into it is shortened and redacted."""
    first = next(_leaves(error))
    match first:
        case MCPError():
            said = first.error.message
        case TimeoutError():
            said = f"It was not ready within {spec.connect_seconds:g} s; a larger connect_timeout may help"
        case OSError():
            said = first.strerror or type(first).__name__
        case _:
            # The text of others may quote what was sent or received.
            said = f"{type(first).__name__} ({_CAUSES.get(type(first).__name__, 'its answer makes no sense')})"
    said = " ".join(spec.redact(said).encode("utf-8", "replace").decode().split())
    return said[: limits.MCP_ERROR_CHARACTERS].rstrip(".") + "."


_CAUSES = {
    "ConnectError": "nobody answers at its url",
    "ConnectTimeout": "nobody answers at its url",
    "ReadError": "it broke off",
    "WriteError": "it broke off",
    "RemoteProtocolError": "it does not speak HTTP as it should",
    "UnsupportedProtocol": "its url must begin with http:// or https://",
    "InvalidURL": "its url is not one",
}


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _failed(what: str) -> McpOutput:
    return McpOutput(what, is_error=True)
