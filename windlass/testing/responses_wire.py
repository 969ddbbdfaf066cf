"""A model provider on this machine that speaks OpenAI's Responses protocol, its answers decided by a test.

    async with ResponsesServer() as server:      # server.url is the base_url of a provider of type "openai-responses"
        call = await server.next_call()          # the next request, decoded in call.request
        await call.think("Hm. ")
        await call.say("Hello ")
        await call.end()

Everything else is as in `model_server.py`.
"""

from typing import Any

import msgspec
from aiohttp import web

from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer

_PARTS = {"message": "content_part", "reasoning": "reasoning_summary_part"}


class ResponsesCall(ModelCall):
    """Saying begins an item of the answer, or goes on with it; something of another kind ends it and begins the next.

    Calls stay open until the end, so that pieces of two can come in turn.
    """

    def __init__(self, http_request: web.Request, request: dict[str, Any], wait_seconds: float) -> None:
        super().__init__(http_request, request, wait_seconds)
        self._items: list[dict[str, Any]] = []
        self._open: list[int] = []
        self._calls: dict[int, int] = {}  # where the item of a call is
        self._sequence = 0

    async def say(self, text: str) -> None:
        await self._text("message", "response.output_text.delta", text, {"type": "output_text", "annotations": []})

    async def refuse(self, text: str) -> None:
        """Words of a refusal: the model's own, not an error."""
        await self._text("message", "response.refusal.delta", text, {"type": "refusal"})

    async def think(self, text: str, part: int = 0) -> None:
        """Words of the summary of its thoughts; an empty text makes thoughts that are hidden."""
        await self._item("reasoning")
        if text:
            await self._text("reasoning", "response.reasoning_summary_text.delta", text, {"type": "summary_text"}, part)

    async def think_aloud(self, text: str) -> None:
        """Words of the thoughts themselves, as servers of open models send them: not encrypted."""
        index = await self._item("reasoning")
        item = self._items[index]
        item["encrypted_content"] = None
        item.setdefault("content", [{"type": "reasoning_text", "text": ""}])[0]["text"] += text
        await self._event("response.reasoning_text.delta", output_index=index, content_index=0, delta=text)

    async def tool_piece(self, index: int, text: str, *, id: str = "", name: str = "") -> None:
        if index not in self._calls:
            await self._end_items("message", "reasoning")
            call_id = id or f"call_{index}"
            self._calls[index] = await self._begin("function_call", call_id=call_id, name=name, arguments="")
            self._tools = max(self._tools, index + 1)
        place = self._calls[index]
        self._items[place]["arguments"] += text
        await self._event("response.function_call_arguments.delta", output_index=place, delta=text)

    async def end(self, reason: str = "", usage: dict[str, Any] | None = None) -> None:
        """End the answer; a reason is why it is incomplete, in the provider's words."""
        await self._begin_answer()
        await self._end_items("message", "reasoning", "function_call")
        status = "incomplete" if reason else "completed"
        details = {"reason": reason} if reason else None
        await self._event(f"response.{status}", response=self._response(status, usage, incomplete_details=details))
        await self.end_body()

    async def fail(
        self, status: int = 500, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Refuse with this status, or, when the answer has begun, fail it with the same error."""
        if self._stream is None:
            await super().fail(status, body, headers)
            return
        error = (body or {"error": {"code": "server_error", "message": "The test said no."}})["error"]
        await self._event("response.failed", response=self._response("failed", None, error=error))
        await self.end_body()

    async def event(self, body: dict[str, Any]) -> None:
        name = str(body.get("type", "message")).encode()
        await self.raw(b"event: " + name + b"\ndata: " + msgspec.json.encode(body) + b"\n\n")

    # -- items --------------------------------------------------------------------------------------------------------

    async def _text(self, type: str, event: str, text: str, piece: dict[str, Any], part: int = 0) -> None:
        index = await self._item(type)
        field, place = ("summary", "summary_index") if type == "reasoning" else ("content", "content_index")
        word = "refusal" if piece["type"] == "refusal" else "text"
        pieces = self._items[index][field]
        if len(pieces) <= part:
            pieces.append({**piece, word: ""})
            await self._event(
                f"response.{_PARTS[type]}.added", output_index=index, part={**piece, word: ""}, **{place: part}
            )
        pieces[part][word] += text
        await self._event(event, output_index=index, delta=text, **{place: part}, **_extras(event))

    async def _item(self, type: str) -> int:
        if self._open and self._items[self._open[-1]]["type"] == type:
            return self._open[-1]
        await self._end_items("message", "reasoning")
        if type == "message":
            return await self._begin("message", role="assistant", content=[])
        return await self._begin("reasoning", summary=[], encrypted_content="")

    async def _begin(self, type: str, **fields: Any) -> int:
        await self._begin_answer()
        index = len(self._items)
        item = {"id": f"{type}_{index}", "type": type, "status": "in_progress", **fields}
        self._items.append(item)
        self._open.append(index)
        await self._event("response.output_item.added", output_index=index, item=item)
        return index

    async def _end_items(self, *types: str) -> None:
        for index in list(self._open):
            item = self._items[index]
            if item["type"] not in types:
                continue
            self._open.remove(index)
            item["status"] = "completed"
            if item["type"] == "reasoning" and item["encrypted_content"] is not None:
                item["encrypted_content"] = f"encrypted-{index}"
            if item["type"] == "function_call":
                await self._event(
                    "response.function_call_arguments.done", output_index=index, arguments=item["arguments"]
                )
            await self._event("response.output_item.done", output_index=index, item=item)

    # -- events -------------------------------------------------------------------------------------------------------

    async def _begin_answer(self) -> None:
        if self._stream is None:
            await self._event("response.created", response=self._response("in_progress", None))

    async def _event(self, type: str, **fields: Any) -> None:
        item = fields.get("output_index")
        item_id = {"item_id": self._items[item]["id"]} if item is not None and "item" not in fields else {}
        self._sequence += 1
        await self.event({"type": type, "sequence_number": self._sequence - 1, **item_id, **fields})

    def _response(self, status: str, usage: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
        return {
            "id": "resp_test",
            "object": "response",
            "created_at": 0,
            "model": self.request.get("model", ""),
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": self.request.get("instructions"),
            "output": self._items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage,
            **fields,
        }


class ResponsesServer(ModelServer):
    path = "/v1/responses"
    call_type = ResponsesCall
    reasons = {
        "end_turn": "",
        "tool_use": "",
        "max_tokens": "max_output_tokens",
        "content_filter": "content_filter",
    }


def _extras(event: str) -> dict[str, Any]:
    return {"logprobs": [], "obfuscation": "x7Q"} if event == "response.output_text.delta" else {}
