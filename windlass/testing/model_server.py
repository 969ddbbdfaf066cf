"""A model provider on this machine whose answers a test decides, word by word, while they stream.

    async with ModelServer() as server:          # server.url is the base_url of a provider of type "openai"
        call = await server.next_call()          # the next request, decoded in call.request
        await call.say("Hello ")
        await call.end()

It speaks chat completions over real HTTP, so the whole way from the agent to the wire is the real one. `server.auto(f)`
answers by itself: `f(request)` returns the steps of a script's reply. Every wait has a bound and says what it was for.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Self, assert_never

import msgspec
from aiohttp import web

from windlass import limits
from windlass.models.script import parse_reply
from windlass.models.scripted import play
from windlass.testing.model_call import CallGone, ModelCall, waited_for
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, TextChunk, ToolCallChunk, UsageChunk

Reply = list[dict[str, Any]]
ReplyFunction = Callable[[dict[str, Any]], Reply]


class ModelServer:
    """Listens on a free loopback port while entered. Leaving drops every call that is still open.

    A server of another wire is a subclass with its own `path`, `call_type` and `reasons` (our words to the wire's).
    """

    path = "/v1/chat/completions"
    call_type: type[ModelCall] = ModelCall
    reasons: Mapping[str, str] = {
        "end_turn": "stop",
        "tool_use": "tool_calls",
        "max_tokens": "length",
        "content_filter": "content_filter",
    }

    def __init__(self, wait_seconds: float = 10.0) -> None:
        self._wait_seconds = wait_seconds
        self._calls: asyncio.Queue[ModelCall] = asyncio.Queue(limits.TEST_MODEL_CALLS)
        self._open: set[ModelCall] = set()
        self._reply: ReplyFunction | None = None
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.requests: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=limits.REQUEST_BODY_BYTES * 4)
        application.router.add_post(self.path, self._answer)
        application.router.add_get("/v1/models", self._list_models)
        # handler_cancellation: how a handler learns that its client has gone, which is what `closed` reports.
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        for call in list(self._open):
            call.drop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def next_call(self, wait_seconds: float | None = None) -> ModelCall:
        """The next request that nobody has taken yet; waits for one."""
        bound = self._wait_seconds if wait_seconds is None else wait_seconds
        return await waited_for(self._calls.get(), bound, "a request to the model")

    def auto(self, reply: ReplyFunction | None) -> None:
        """From now on answer by itself: `reply(request)` gives the steps. None: give the calls to the test again."""
        self._reply = reply

    def hang_up(self) -> None:
        """Close the connections on which nothing is asked, as a provider does with idle ones."""
        assert self._runner is not None and self._runner.server is not None
        busy = {call.transport for call in self._open}
        for connection in self._runner.server.connections:
            if connection.transport not in busy:
                connection.force_close()

    @property
    def open_calls(self) -> int:
        """How many requests have neither been answered to the end nor dropped."""
        return len(self._open)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read(), type=dict[str, Any])
        call = self.call_type(request, body, self._wait_seconds)
        del self.requests[: -limits.TEST_MODEL_CALLS]
        self.requests.append(body)
        self._open.add(call)
        try:
            if self._reply is not None:
                await self._play(call, self._reply(body))
            elif self._calls.full():
                return web.json_response({"error": {"message": "The test takes no calls."}}, status=503)
            else:
                self._calls.put_nowait(call)
            return await call.response()
        finally:
            self._open.discard(call)
            call.mark_closed()

    async def _play(self, call: ModelCall, reply: Reply) -> None:
        try:
            async with aclosing(play(parse_reply(reply))) as chunks:
                async for chunk in chunks:
                    await self._send(call, chunk)
        except ModelError as error:
            await call.fail(503 if error.retryable else 400, {"error": {"message": error.message}})
        except CallGone:
            pass  # the client left in the middle of it, as it may

    async def _send(self, call: ModelCall, chunk: Chunk) -> None:
        match chunk:
            case TextChunk():
                await call.say(chunk.text)
            case ReasoningChunk():
                await call.think(chunk.text)
            case ToolCallChunk():
                await call.tool_piece(chunk.index, chunk.input, id=chunk.id, name=chunk.name)
            case FinishChunk():
                await call.end(self.reasons.get(chunk.reason, self.reasons["end_turn"]))
            case UsageChunk():
                await call.event({"choices": [], "usage": msgspec.to_builtins(chunk.usage)})
            case _:
                assert_never(chunk)

    async def _list_models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "test-model", "object": "model"}]})
