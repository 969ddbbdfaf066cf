"""One request at the ModelServer: what was asked, and the hand that writes the answer."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import msgspec
from aiohttp import web

Result = TypeVar("Result")


class CallGone(Exception):
    """The client has dropped this call, or it was ended already: nothing more can be said in it."""


class ModelCall:
    """`request` is the decoded body, `headers` and `peer` are of the HTTP request. Saying begins the answer."""

    def __init__(self, http_request: web.Request, request: dict[str, Any], wait_seconds: float) -> None:
        self.request = request
        self.headers: Mapping[str, str] = http_request.headers
        self.peer = http_request.transport.get_extra_info("peername") if http_request.transport else None
        self._http_request = http_request
        self._wait_seconds = wait_seconds
        self._stream: web.StreamResponse | None = None
        self._answered: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()
        self._tools = 0

    @property
    def transport(self) -> asyncio.Transport | None:
        """The connection it came on, while that is open."""
        return self._http_request.transport

    @property
    def has_begun(self) -> bool:
        """Whether anything was answered yet."""
        return self._stream is not None

    async def say(self, text: str) -> None:
        await self._delta({"content": text})

    async def think(self, text: str) -> None:
        await self._delta({"reasoning_content": text})

    async def tool(self, name: str, input: dict[str, Any], id: str = "") -> None:
        """A whole tool call, sent in two pieces as real providers do."""
        index, text = self._tools, msgspec.json.encode(input).decode()
        half = len(text) // 2
        await self.tool_piece(index, text[:half], id=id or f"call_{index}", name=name)
        await self.tool_piece(index, text[half:])

    async def tool_piece(self, index: int, text: str, *, id: str = "", name: str = "") -> None:
        self._tools = max(self._tools, index + 1)
        function = {"arguments": text, **({"name": name} if name else {})}
        await self._delta({"tool_calls": [{"index": index, "function": function, **({"id": id} if id else {})}]})

    async def end(self, reason: str = "", usage: dict[str, Any] | None = None) -> None:
        """End the answer. The reason is in the provider's words; without one it is `stop` or `tool_calls`, as fits."""
        finish = reason or ("tool_calls" if self._tools else "stop")
        await self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if usage is not None:
            await self.event({"choices": [], "usage": usage})
        await self.raw(b"data: [DONE]\n\n")
        await self.end_body()

    async def fail(
        self, status: int = 500, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Refuse with this status, or, when the answer has begun, break it off with an error object."""
        body = body or {"error": {"message": "The test said no."}}
        if self._stream is not None:
            await self.event(body)
            await self.end_body()
        elif not self._answered.done():
            self._answered.set_result(web.json_response(body, status=status, headers=headers))

    def drop(self) -> None:
        """Cut the connection, as a crash of the provider would."""
        if self._http_request.transport is not None:
            self._http_request.transport.abort()

    async def closed(self, wait_seconds: float | None = None) -> None:
        """Return when the call is over: of a call that was not ended, when the client has dropped the connection."""
        bound = self._wait_seconds if wait_seconds is None else wait_seconds
        await waited_for(self._closed.wait(), bound, "the client to drop its request")

    async def event(self, body: dict[str, Any]) -> None:
        """Send any object as an event."""
        await self.raw(b"data: " + msgspec.json.encode(body) + b"\n\n")

    async def raw(self, written: bytes) -> None:
        """Send bytes as they are."""
        if self._closed.is_set() or self._answered.done():
            raise CallGone("The client has dropped this call, or it was ended already.")
        try:
            if self._stream is None:
                self._stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
                await self._stream.prepare(self._http_request)
            await self._stream.write(written)
        except ConnectionError:
            raise CallGone("The client has dropped this call.") from None

    async def end_body(self) -> None:
        """End the HTTP body without another word."""
        assert self._stream is not None
        await self._stream.write_eof()
        if not self._answered.done():
            self._answered.set_result(self._stream)

    async def response(self) -> web.StreamResponse:
        """For the server: what the handler returns when the test is done with this call."""
        return await self._answered

    def mark_closed(self) -> None:
        """For the server: the handler is leaving."""
        self._closed.set()

    async def _delta(self, delta: dict[str, Any]) -> None:
        await self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


async def waited_for(awaitable: Awaitable[Result], seconds: float, what: str) -> Result:
    """The result, or a TimeoutError that says what did not come: a bare one tells nobody where a test stands."""
    try:
        return await asyncio.wait_for(awaitable, seconds)
    except TimeoutError:
        raise TimeoutError(f"Waited {seconds:g} s for {what}; it did not come.") from None
