"""One MCP server of one workspace: started when it is first needed, started again with a limit, and its state told.

Its life is one task, because a session must be entered and left in the same one. Whoever needs the server starts that
task and waits until it is connected, never longer than its connect time.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog

from windlass import limits
from windlass.mcp.ending import Ending
from windlass.mcp.last_words import LastWords
from windlass.mcp.place import Place
from windlass.mcp.restarts import Restarts
from windlass.mcp.spec import ServerSpec
from windlass.wire.delegation import McpOutput, McpTool
from windlass.wire.mcp import McpState, McpStateName

if TYPE_CHECKING:
    from types import ModuleType

    from windlass.mcp.connection import Connection

logger = structlog.get_logger("windlass.mcp")
Tell = Callable[[McpState], None]


class Server:
    """`state` is what was told last. After `close` nothing is told and nothing is started any more."""

    def __init__(self, spec: ServerSpec, place: Place, tell: Tell, restarts: Restarts | None = None) -> None:
        self.spec = spec
        self.state = McpState(spec.name, "disabled" if spec.disabled else "stopped")
        self._place = place
        self._tell = tell
        self._restarts = restarts or Restarts()
        self._life: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._tools: tuple[McpTool, ...] = ()
        self._settled = asyncio.Event()  # connected, or failed: not on the way to either
        self._fresh = asyncio.Event()  # `_tools` is what the server said last
        self._closed = False

    # -- what runs need -----------------------------------------------------------------------------------------------

    async def tools(self) -> tuple[McpTool, ...]:
        """What it offers; nothing, when it is not there within its connect time."""
        try:
            async with asyncio.timeout(self.spec.connect_seconds):
                if await self._connected() is not None:
                    await self._fresh.wait()
        except TimeoutError:
            logger.warning("a run goes on without an MCP server that is not ready", server=self.spec.name)
        return self._tools

    async def call(self, tool: str, arguments: dict[str, Any]) -> McpOutput:
        """Call a tool that it offers. What goes wrong is an output that says so: the model decides what to do."""
        try:
            async with asyncio.timeout(self.spec.connect_seconds):
                connection = await self._connected()
        except TimeoutError:
            connection = None
        if connection is None:
            why = self.state.error or "It is not ready."
            return McpOutput(f"The MCP server {self.spec.name} cannot be called: {why}", is_error=True)
        if all(known.name != tool for known in self._tools):
            return McpOutput(f"The MCP server {self.spec.name} has no tool {tool!r} (any more).", is_error=True)
        return await connection.call(tool, arguments)

    async def _connected(self) -> "Connection | None":
        if (self._life is None or self._life.done()) and not self._closed and not self.spec.disabled:
            self._start()
        if self._connection is not None and self._connection.ending.near:
            self._settled.clear()  # its life has not noticed yet; a call now would be lost with it
        await self._settled.wait()
        return self._connection

    def _start(self) -> None:
        """Begin its life, unless it ended too often, or just now."""
        if self._restarts.pause(self._now()) > 0:
            self._settled.set()
            return
        self._settled.clear()
        self._change("starting")
        self._life = asyncio.create_task(self._live(), name=f"mcp server {self.spec.name}")
        self._life.add_done_callback(self._lived)

    def try_again(self) -> None:
        """The next who needs it may start it, however often it failed: somebody looked at the configuration."""
        self._restarts.forget()

    # -- its life -----------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        library = await asyncio.to_thread(_library)
        while True:
            ending, words = Ending(), LastWords()
            was_connected, error = await self._once(library, ending, words)
            self._restarts.ended(self._now())
            why = ending.reason or ending.hint or error or "It closed the connection."
            logger.warning(
                "an MCP server is lost" if was_connected else "an MCP server could not be connected",
                server=self.spec.name,
                why=why,
                said=words.lines(self.spec.redact),
            )
            if self._restarts.given_up(self._now()):
                why += (
                    f" That was {self._restarts.limit} times in {self._restarts.window_seconds:g} s: it is left alone"
                    " for a while. Mend it, then reload the configuration; the server's log has its last words."
                )
            elif was_connected:
                self._change("starting", why)
                await asyncio.sleep(self._restarts.pause(self._now()))
                continue
            self._change("error", why)
            self._settled.set()
            return

    async def _once(self, library: "ModuleType", ending: Ending, words: LastWords) -> tuple[bool, str]:
        """One connection from its beginning to its end: whether there was one, and what broke it."""
        was_connected = False
        try:
            clock = asyncio.timeout(self.spec.connect_seconds)
            async with clock, library.connect(self.spec, self._place, ending, words) as connection:
                tools = await connection.tools()
                clock.reschedule(None)  # it is there; from here on it may take as long as it likes
                was_connected = True
                self._adopt(connection, tools)
                try:
                    await self._attend(connection)
                finally:
                    self._let_go()  # before it is taken down, which can take seconds: nobody is to call it now
        except Exception as error:  # the border of this task: a server can fail in any way, and is told to have
            return was_connected, str(library.explain(error, self.spec))
        return was_connected, ""

    def _adopt(self, connection: "Connection", tools: tuple[McpTool, ...]) -> None:
        self._connection, self._tools = connection, tools
        self._change("connected")
        self._fresh.set()
        self._settled.set()

    def _let_go(self) -> None:
        self._connection, self._tools = None, ()
        self._fresh.clear()
        self._settled.clear()

    async def _attend(self, connection: "Connection") -> None:
        """Until it is lost; look at its tools again when it says that they changed."""
        lost = asyncio.create_task(connection.ending.wait(), name=f"mcp end {self.spec.name}")
        try:
            while not lost.done():
                stale = asyncio.create_task(connection.stale.wait(), name=f"mcp change {self.spec.name}")
                try:
                    await asyncio.wait({lost, stale}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    stale.cancel()
                if not lost.done():
                    await self._refresh(connection)
                    await asyncio.wait({lost}, timeout=limits.MCP_REFRESH_SECONDS)
        finally:
            lost.cancel()

    async def _refresh(self, connection: "Connection") -> None:
        self._fresh.clear()
        try:
            async with asyncio.timeout(self.spec.connect_seconds):
                self._tools = await connection.tools()
        finally:
            self._fresh.set()
        self._change("connected")

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> "asyncio.Task[None] | None":
        """Stop it. Returns what is still ending, for whoever wants to wait for that."""
        self._closed = True
        if self._life is not None:
            self._life.cancel()
        if self.state.state != "disabled":
            self._change("stopped")
        self._settled.set()
        return self._life

    def _lived(self, life: "asyncio.Task[None]") -> None:
        if life is not self._life:
            return  # the next one has begun
        self._life = None
        if not life.cancelled() and (error := life.exception()) is not None:
            logger.error("the life of an MCP server broke off", server=self.spec.name, exc_info=error)
            self._change("error", "Something is wrong in Windlass itself; its log says what.")
        self._settled.set()

    def _change(self, state: McpStateName, error: str = "") -> None:
        if self._closed and state != "stopped":
            return
        self.state = McpState(self.spec.name, state, error, len(self._tools) if state == "connected" else 0)
        self._tell(self.state)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _library() -> "ModuleType":
    """The SDK, once somebody needs it: importing it takes a second, which no start of a server should cost."""
    import anyio

    from windlass.mcp import connection

    anyio.run(anyio.sleep, 0)  # its part for asyncio is imported when it is first used: here, and not on the event loop
    return connection
