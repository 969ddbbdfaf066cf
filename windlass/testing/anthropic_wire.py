"""A provider on this machine that speaks the Messages protocol of Anthropic; a test decides what it says.

    async with AnthropicServer() as server:      # server.url is the base_url of a provider of type "anthropic"
        call = await server.next_call()
        await call.think("Hm.")
        await call.sign("c2ln")
        await call.say("Hello ")
        await call.end()

Blocks are begun and ended by themselves, as the words change from thoughts to text to calls.
"""

from typing import Any

import msgspec
from aiohttp import web

from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicCall(ModelCall):
    """One request for a message, and the hand that writes it."""

    def __init__(self, http_request: web.Request, request: dict[str, Any], wait_seconds: float) -> None:
        super().__init__(http_request, request, wait_seconds)
        self._blocks = 0
        self._open_kind = ""

    async def begin(self, usage: dict[str, Any] | None = None) -> None:
        """Begin the message; without a word about it, it begins with the first thing that is said."""
        message = {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": self.request.get("model", ""),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage or {"input_tokens": 0, "output_tokens": 0},
        }
        await self.event({"type": "message_start", "message": message})
        await self.event({"type": "ping"})

    async def say(self, text: str) -> None:
        await self._in_block("text", {"type": "text", "text": ""})
        await self._delta({"type": "text_delta", "text": text})

    async def think(self, text: str) -> None:
        await self._in_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        await self._delta({"type": "thinking_delta", "thinking": text})

    async def sign(self, signature: str) -> None:
        """Sign the thoughts so far; more of them are a new block."""
        await self._in_block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        await self._delta({"type": "signature_delta", "signature": signature})
        await self.end_block()

    async def redact(self, data: str) -> None:
        """Thoughts that are hidden."""
        await self.begin_block({"type": "redacted_thinking", "data": data})
        await self.end_block()

    async def tool_piece(self, index: int, text: str, *, id: str = "", name: str = "") -> None:
        if index >= self._tools:
            self._tools = index + 1
            await self.begin_block({"type": "tool_use", "id": id, "name": name, "input": {}})
        await self._delta({"type": "input_json_delta", "partial_json": text})

    async def begin_block(self, block: dict[str, Any], kind: str = "other") -> None:
        """Begin any block, ending the one before it."""
        if not self.has_begun:
            await self.begin()
        await self.end_block()
        self._open_kind = kind
        await self.event({"type": "content_block_start", "index": self._blocks, "content_block": block})

    async def end_block(self) -> None:
        if self._open_kind:
            self._open_kind = ""
            await self.event({"type": "content_block_stop", "index": self._blocks})
            self._blocks += 1

    async def end(self, reason: str = "", usage: dict[str, Any] | None = None) -> None:
        """End the answer; without a reason it is `end_turn` or `tool_use`, as fits."""
        if not self.has_begun:
            await self.begin()
        await self.end_block()
        ending = {"stop_reason": reason or ("tool_use" if self._tools else "end_turn"), "stop_sequence": None}
        await self.event({"type": "message_delta", "delta": ending, "usage": usage or {"output_tokens": 0}})
        await self.event({"type": "message_stop"})
        await self.end_body()

    async def fail(
        self, status: int = 500, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Refuse with this status, or, when the answer has begun, break it off with an error event."""
        said = (body or {}).get("error", {"message": "The test said no."})
        error = {"type": _ERROR_TYPES.get(status, "api_error"), **said}
        await super().fail(status, {"type": "error", "error": error, "request_id": "req_test"}, headers)

    async def event(self, body: dict[str, Any]) -> None:
        """Send any object as an event named by its type."""
        await self.raw(f"event: {body['type']}\ndata: ".encode() + msgspec.json.encode(body) + b"\n\n")

    async def _in_block(self, kind: str, block: dict[str, Any]) -> None:
        if self._open_kind != kind:
            await self.begin_block(block, kind)

    async def _delta(self, delta: dict[str, Any]) -> None:
        await self.event({"type": "content_block_delta", "index": self._blocks, "delta": delta})


class AnthropicServer(ModelServer):
    """A ModelServer whose calls are messages."""

    path = "/v1/messages"
    call_type = AnthropicCall
    reasons = {
        "end_turn": "end_turn",
        "tool_use": "tool_use",
        "max_tokens": "max_tokens",
        "content_filter": "refusal",
    }

    async def next_call(self, wait_seconds: float | None = None) -> AnthropicCall:
        """The next request that nobody has taken yet; waits for one."""
        call = await super().next_call(wait_seconds)
        assert isinstance(call, AnthropicCall)
        return call
