"""A worker whose every frame a test decides, over a real socket: also what no honest one would say."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMsgType, web

SUBPROTOCOL = "windlass.1"


class Talk:
    """One connection, as the worker sees it. `heard` is every frame that came, the handshake's too."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.request = request
        self.heard: list[dict[str, Any]] = []
        self.run: dict[str, Any] = {}
        self._seq = 0

    async def receive(self, kind: str = "") -> dict[str, Any]:
        """The next frame (of this kind); what the test did not wait for is in `heard`."""
        while True:
            message = await self.socket.receive()
            if message.type is WSMsgType.PING:
                await self.socket.pong(message.data)
                continue
            assert message.type is WSMsgType.TEXT, f"the parent went away instead of sending {kind or 'a frame'}"
            frame: dict[str, Any] = json.loads(message.data)
            self.heard.append(frame)
            if not kind or frame["kind"] == kind:
                return frame

    async def start(self) -> dict[str, Any]:
        """Shake hands, if this dialect does, and hear the run."""
        if self.socket.ws_protocol == SUBPROTOCOL:
            await self.receive("hello")
            await self.send(kind="hello", version=1)
        self.run = await self.receive("run")
        return self.run

    async def send(self, **frame: Any) -> None:
        await self.socket.send_str(json.dumps(frame))

    async def send_of_run(self, kind: str, **fields: Any) -> None:
        named = {name: self.run[name] for name in ("run_id", "attempt") if name in self.run}
        await self.send(kind=kind, **named, **fields)

    async def event(self, event: dict[str, Any], **fields: Any) -> None:
        """The next event of the run, numbered."""
        self._seq += 1
        await self.send_of_run("event", seq=self._seq, event=event, **fields)

    async def message(self, id: str, text: str) -> None:
        """A whole assistant message."""
        await self.event({"type": "message_start", "message_id": id, "role": "assistant"})
        await self.event(
            {"type": "delta", "message_id": id, "part": 0, "field": "text", "text": text, "part_type": "text"}
        )
        await self.event({"type": "message_end", "message_id": id, "reason": "end_turn"}, durable=True)

    async def terminal(self, status: str = "completed", **fields: Any) -> None:
        await self.send_of_run("terminal", status=status, **fields)

    async def gone(self) -> None:
        """Return when the parent has closed the connection."""
        while (await self.socket.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED):
            pass


Script = Callable[[Talk], Awaitable[None]]


@asynccontextmanager
async def scripted_worker(script: Script, *, plain: bool = False) -> AsyncIterator[str]:
    """Serve `script` once per connection; the address. An error in the script fails the test, at the end."""
    failures: list[BaseException] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        protocols = () if plain else (SUBPROTOCOL,)
        socket = web.WebSocketResponse(protocols=protocols, autoping=False, max_msg_size=64 * 1024 * 1024, timeout=0.2)
        await socket.prepare(request)
        try:
            await script(Talk(socket, request))
        except Exception as error:
            failures.append(error)
        return socket

    async with served(serve) as url:
        yield url
    if failures:
        raise failures[0]


@asynccontextmanager
async def served(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """Any HTTP server on a free port; its address as a worker's would be."""
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
