"""OpenAI's own SDK and our adapters side by side, for both protocols: the oracle of `test_openai_oracle*.py`.

It is loaded by the first test that asks it: loading takes a second, and most test processes only collect these.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from model_requests import calls_of, reasoning_of, text_of

from windlass.models.openai import OpenAIModel
from windlass.models.responses import ResponsesModel
from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.responses_wire import ResponsesCall, ResponsesServer
from windlass.wire.model import Chunk, FinishChunk, UsageChunk
from windlass.wire.runs import Usage

if TYPE_CHECKING:
    import openai

KEY = "key-of-the-test"


class Said(msgspec.Struct, frozen=True):
    """What an answer was, in words that have nothing of a protocol in them."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, str]] = []
    usage: Usage = Usage()
    finish: str = ""


def ours(chunks: list[Chunk]) -> Said:
    usage = next((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), Usage())
    finish = next(chunk.reason for chunk in chunks if isinstance(chunk, FinishChunk))
    return Said(text_of(chunks), reasoning_of(chunks), calls_of(chunks), usage, finish)


class Chat:
    """Chat completions, through the SDK and through us."""

    def __init__(self, server: ModelServer, sdk: openai.AsyncOpenAI) -> None:
        self.server = server
        self.sdk = sdk
        self.model = OpenAIModel("local", server.url, KEY)

    async def theirs(self, **body: Any) -> Said:
        body = {"model": "test-model", "messages": [{"role": "user", "content": "hello"}], **body}
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        text = reasoning = finish = ""
        calls: dict[int, list[str]] = {}
        usage = Usage()
        async for chunk in await self.sdk.chat.completions.create(**body, **options):
            if chunk.usage is not None:
                usage = _chat_usage(chunk.usage)
            for choice in chunk.choices:
                extra = choice.delta.model_extra or {}
                text += choice.delta.content or ""
                reasoning += extra.get("reasoning_content") or extra.get("reasoning") or ""
                finish = choice.finish_reason or finish
                for piece in choice.delta.tool_calls or ():
                    assert piece.function is not None
                    known = calls.setdefault(piece.index, [piece.id or "", piece.function.name or "", ""])
                    known[2] += piece.function.arguments or ""
        reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
        return Said(text, reasoning, [(*call,) for call in calls.values()], usage, reasons.get(finish, finish))


def _chat_usage(usage: Any) -> Usage:
    details = usage.prompt_tokens_details
    read, written = (details.cached_tokens, details.cache_write_tokens) if details else (0, 0)
    return Usage(usage.prompt_tokens, usage.completion_tokens, read or 0, written or 0)


class Responses:
    """The Responses protocol, through the SDK and through us."""

    def __init__(self, server: ResponsesServer, sdk: openai.AsyncOpenAI) -> None:
        self.server = server
        self.sdk = sdk
        self.model = ResponsesModel("local", server.url, KEY)
        self.output: list[Any] = []  # the items of the SDK's newest answer

    async def theirs(self, **body: Any) -> Said:
        import openai

        body = {"model": "test-model", "input": "hello", **body}
        thoughts: dict[tuple[int, int], str] = {}
        final = None
        async for event in await self.sdk.responses.create(**body, stream=True):
            match event.type:
                case "response.reasoning_summary_text.delta":
                    place = (event.output_index, event.summary_index)
                    thoughts[place] = thoughts.get(place, "") + event.delta
                case "response.completed" | "response.incomplete":
                    final = event.response
                case "response.failed":
                    raise openai.APIError(event.response.error.message, None, body=event.response.error)
                case "error":
                    raise openai.APIError(event.message, None, body=None)
        assert final is not None
        self.output = final.output
        calls = [(item.call_id, item.name, item.arguments) for item in final.output if item.type == "function_call"]
        reason = final.incomplete_details.reason if final.incomplete_details else ""
        finish = {"max_output_tokens": "max_tokens"}.get(reason, reason) or ("tool_use" if calls else "end_turn")
        usage = Usage()
        if final.usage is not None:
            details = final.usage.input_tokens_details
            written = details.cache_write_tokens or 0
            usage = Usage(final.usage.input_tokens, final.usage.output_tokens, details.cached_tokens, written)
        return Said(final.output_text, "\n\n".join(thoughts.values()), calls, usage, finish)


async def everything(call: ModelCall) -> None:
    """An answer with thoughts, words, two calls and what it cost."""
    await call.think("Hm. ")
    await call.think("Aha.")
    await call.say("Looking.")
    await call.tool("ls", {"path": "a/b"}, id="c1")
    await call.tool("view", {"path": 'quo"te'}, id="c2")
    if isinstance(call, ResponsesCall):
        details = {"cached_tokens": 8, "cache_write_tokens": 2}
        counted = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15, "input_tokens_details": details}
    else:
        details = {"cached_tokens": 8, "cache_write_tokens": 2}
        counted = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": details}
    await call.end(usage=counted)


@asynccontextmanager
async def open_wire(kind: type[Chat] | type[Responses]) -> AsyncIterator[Chat | Responses]:
    """A fake server, with the SDK and our adapter at it."""
    import openai

    plain = openai.DefaultAsyncHttpxClient(verify=False, timeout=10)  # certificates of the system are 40 ms to read
    async with (
        (ModelServer if kind is Chat else ResponsesServer)() as server,
        openai.AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=0, timeout=10, http_client=plain) as sdk,
    ):
        wire = kind(server, sdk)  # type: ignore[arg-type]
        yield wire
        await wire.model.aclose()
