"""An MCP server for tests, written with the SDK's server side: over standard input and output, or streamable HTTP.

    python a_server.py DIRECTORY [OPTION...]

What happens to it is written to files in DIRECTORY, so that a test can see it from outside. Options: `http` (prints its
port), `silent` (never answers), `slow=SECONDS` before it starts, `once` (ends at its second start), `chatty` (prints
lines that are no messages), `name=WORDS` (the answer of `who`), `many=N` more tools.
"""

import asyncio
import base64
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer

directory = Path(sys.argv[1])
options = dict(option.partition("=")[::2] for option in sys.argv[2:])


def note(name: str, text: str = "") -> None:
    with (directory / name).open("a") as file:
        file.write(text + "\n")


server = MCPServer("a-server")
PIXEL = base64.b64encode(b"not really a picture").decode()


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
async def who() -> str:
    """Who this is."""
    return options.get("name", "nobody")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def fail(why: str) -> str:
    raise ValueError(why)


@server.tool()
async def environment() -> str:
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())) + f"\ncwd={os.getcwd()}"


@server.tool()
async def wait() -> str:
    """Wait until it is cancelled."""
    note("waiting")
    try:
        await asyncio.sleep(600)
    except BaseException as error:
        note("cancelled", type(error).__name__)
        raise
    return "over"


@server.tool()
async def die(code: int = 3) -> str:
    print("last words of a server", os.environ.get("A_KEY", ""), file=sys.stderr, flush=True)
    os._exit(code)


@server.tool(structured_output=False)
async def picture() -> list[Any]:
    image = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
    sound = types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav")
    return [types.TextContent(type="text", text="look:"), image, image, sound]


@server.tool(structured_output=False)
async def long(size: int) -> str:
    return "<" + "x" * (size - 2) + ">"


@server.tool(structured_output=False)
async def raw(text: str) -> str:
    """Write a line of one's own to standard output, then answer."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return "written"


@server.tool()
async def grow(context: Context) -> str:
    """Have one more tool, and say so."""

    async def grown() -> str:
        return "grown"

    server.add_tool(grown, name="grown")
    await context.request_context.session.send_tool_list_changed()
    return "done"


@server.tool()
async def root(context: Context) -> str:
    roots = await context.request_context.session.list_roots()
    return str(roots.roots[0].uri)


for number in range(int(options.get("many", 0))):
    server.add_tool(who, name=f"tool_{number}", description="x" * 100)

if __name__ == "__main__":
    note("pid", str(os.getpid()))
    if "slow" in options:
        time.sleep(float(options["slow"]))
    if "silent" in options:
        time.sleep(600)
    if "once" in options and (directory / "pid").read_text().count("\n") > 1:
        sys.exit(7)
    if "chatty" in options:
        print("Welcome! This line is no message.\n{\n\n[1, 2]\n" + "[" * 100_000, flush=True)
        print("something for the log", file=sys.stderr, flush=True)
    if "http" in options:
        import uvicorn

        config = uvicorn.Config(server.streamable_http_app(), log_level="error")
        http = uvicorn.Server(config)

        async def serve() -> None:
            listening = socket.create_server(("127.0.0.1", int(options["http"] or 0)))
            note("port", str(listening.getsockname()[1]))
            await http.serve([listening])

        asyncio.run(serve())
    else:
        server.run("stdio")
