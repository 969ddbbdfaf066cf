"""The official SDK as the oracle: the same bytes through it and through us mean the same, and so do our requests.

It is loaded by the first test that asks it: loading takes seconds, and most test processes only collect these.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from anthropic_recordings import EVERYTHING, block, call_block, event, start, stop, text_block, thinking_block
from model_requests import collect, message, request, tool_spec

from windlass.models.anthropic_request import REDACTED
from windlass.testing.anthropic_wire import AnthropicServer
from windlass.wire.messages import (
    Binary,
    BinaryData,
    ImageUrl,
    ImageUrlData,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, TextChunk, ToolCallChunk, UsageChunk

if TYPE_CHECKING:
    import anthropic

KEY = "sk-ant-canary"
MODEL = "claude-opus-5-5"


@pytest.fixture
async def sdk(anthropic_server: AnthropicServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    import anthropic

    base = anthropic_server.url.removesuffix("/v1")
    plain = anthropic.DefaultAsyncHttpxClient(verify=False)  # certificates of the system are 40 ms to read
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=base, max_retries=0, http_client=plain) as client:
        yield client


async def through_sdk(client: anthropic.AsyncAnthropic, **fields: Any) -> anthropic.types.Message:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], **fields}
    async with client.messages.stream(model=MODEL, max_tokens=100, **asked) as stream:
        return await stream.get_final_message()


async def replay(server: AnthropicServer, recorded: bytes) -> None:
    call = await server.next_call()
    await call.raw(recorded)
    await call.end_body()


def parts_of(chunks: list[Chunk]) -> list[Part]:
    """The parts of an answer, as an agent puts them together: by block, in the order in which they begin."""
    parts: dict[tuple[type, int], Part] = {}
    for chunk in chunks:
        match chunk:
            case TextChunk():
                text = parts.setdefault((Text, chunk.block), Text(TextData()))
                text.data.text += chunk.text
            case ReasoningChunk():
                thought = parts.setdefault((Reasoning, chunk.block), Reasoning(ReasoningData()))
                thought.data.thinking += chunk.text
                thought.data.signature += chunk.signature
            case ToolCallChunk():
                new = ToolCall(ToolCallData(chunk.id, chunk.name, ""))
                parts.setdefault((ToolCall, chunk.index), new).data.input += chunk.input
            case _:
                pass
    return list(parts.values())


def plain(part: Part) -> tuple[str, ...] | tuple[str, str, str, Any]:
    match part:
        case Text():
            return "text", part.data.text
        case Reasoning() if part.data.signature.startswith(REDACTED):
            return "redacted_thinking", part.data.signature.removeprefix(REDACTED)
        case Reasoning():
            return "thinking", part.data.thinking, part.data.signature
        case ToolCall():
            return "tool_use", part.data.id, part.data.name, msgspec.json.decode(part.data.input or "{}")
        case _:
            raise AssertionError(part)


def plain_of_sdk(content: Any) -> tuple[Any, ...]:
    match content.type:
        case "text":
            return "text", content.text
        case "thinking":
            return "thinking", content.thinking, content.signature
        case "redacted_thinking":
            return "redacted_thinking", content.data
        case _:
            return "tool_use", content.id, content.name, content.input


RECORDINGS = {
    "everything": EVERYTHING,
    "text": start(input_tokens=3) + text_block(0, "Hel", "lo.") + stop("end_turn", output_tokens=9),
    "cut off": start() + text_block(0, "Hel") + stop("max_tokens", output_tokens=1),
    "refused": start() + stop("refusal", output_tokens=0),
    "empty": start(input_tokens=1) + stop("end_turn", output_tokens=1),
    "no arguments": start() + call_block(0, "c", "now") + stop("tool_use", output_tokens=4),
    "whole arguments": start()
    + block(0, {"type": "tool_use", "id": "c", "name": "ls", "input": {"a": [1]}})
    + stop("tool_use", output_tokens=4),
    "text in the beginning of its block": start()
    + block(0, {"type": "text", "text": "Hel"}, {"type": "text_delta", "text": "lo"})
    + stop("end_turn", output_tokens=2),
    "usage at the end": start(input_tokens=5, cache_read_input_tokens=1)
    + text_block(0, "x")
    + stop("end_turn", input_tokens=8, cache_read_input_tokens=2, cache_creation_input_tokens=3, output_tokens=4),
    "hidden thoughts": start() + thinking_block(0, "c2ln") + text_block(1, "x") + stop("end_turn", output_tokens=2),
    "pings": start() + event("ping") + text_block(0, "a") + event("ping") + stop("end_turn", output_tokens=2),
}
REASONS = {"end_turn": "end_turn", "tool_use": "tool_use", "max_tokens": "max_tokens", "refusal": "content_filter"}


@pytest.mark.parametrize("name", RECORDINGS)
async def test_an_answer_means_the_same_to_the_sdk_and_to_us(
    anthropic_server: AnthropicServer, open_anthropic, sdk: anthropic.AsyncAnthropic, name: str
) -> None:
    """Otherwise we would show, run or count something else than the provider said."""
    theirs, _ = await asyncio.gather(through_sdk(sdk), replay(anthropic_server, RECORDINGS[name]))
    model = open_anthropic(anthropic_server.url, KEY)
    chunks, _ = await asyncio.gather(collect(model, request()), replay(anthropic_server, RECORDINGS[name]))
    # A block without a word in it is one to the SDK and none to us: there is nothing to show or to send back.
    said = [content for content in theirs.content if content.type != "text" or content.text]
    assert [plain(part) for part in parts_of(chunks)] == [plain_of_sdk(content) for content in said]
    usage = next(chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk))
    read, written = theirs.usage.cache_read_input_tokens or 0, theirs.usage.cache_creation_input_tokens or 0
    assert usage.prompt_tokens == theirs.usage.input_tokens + read + written
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (read, written)
    assert usage.completion_tokens == theirs.usage.output_tokens
    assert chunks[-1] == FinishChunk(REASONS[str(theirs.stop_reason)])


KINDS = {
    "AuthenticationError": "auth",
    "PermissionDeniedError": "auth",
    "RateLimitError": "limit",
    "NotFoundError": "refused",
    "BadRequestError": "refused",
    "UnprocessableEntityError": "refused",
    "ContentTooLargeError": "overflow",
    "InternalServerError": "broken",
}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429, 500, 503, 504, 529])
async def test_a_refusal_is_of_the_same_kind_to_the_sdk_and_to_us(
    anthropic_server: AnthropicServer, open_anthropic, sdk: anthropic.AsyncAnthropic, status: int
) -> None:
    """Otherwise we would try again what the provider's own client gives up, or the other way round."""
    import anthropic

    async def refuse() -> None:
        await (await anthropic_server.next_call()).fail(status, {"error": {"message": "It said no."}})

    with pytest.raises(anthropic.APIStatusError) as theirs:
        await asyncio.gather(through_sdk(sdk), refuse())
    with pytest.raises(ModelError) as ours:
        await asyncio.gather(collect(open_anthropic(anthropic_server.url, KEY), request()), refuse())
    kinds = {getattr(anthropic, name): kind for name, kind in KINDS.items()}
    assert ours.value.kind == next(kind for type, kind in kinds.items() if isinstance(theirs.value, type))
    assert ours.value.retryable is sdk._should_retry(theirs.value.response)


async def test_an_error_in_the_middle_is_one_to_the_sdk_and_to_us(
    anthropic_server: AnthropicServer, open_anthropic, sdk: anthropic.AsyncAnthropic
) -> None:
    """Otherwise half an answer would pass for a whole one."""
    import anthropic

    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    recorded = start() + text_block(0, "Half") + error
    with pytest.raises(anthropic.APIStatusError) as theirs:
        await asyncio.gather(through_sdk(sdk), replay(anthropic_server, recorded))
    model = open_anthropic(anthropic_server.url, KEY)
    with pytest.raises(ModelError, match=str(theirs.value.api_message)):
        await asyncio.gather(collect(model, request()), replay(anthropic_server, recorded))
    assert theirs.value.type == "overloaded_error"


# -- requests ---------------------------------------------------------------------------------------------------------

PNG = {"type": "base64", "media_type": "image/png", "data": "QUJD"}


def our_conversation(answer: list[Part]) -> list[Message]:
    """A person sends two pictures; the model thinks and calls two tools; a steering message comes with the results."""
    said = msgspec.structs.replace(message("assistant", *answer), provider="claude", model=MODEL)
    pictures = [Binary(BinaryData("a.png", "image/png", "QUJD")), ImageUrl(ImageUrlData("https://example.org/b.png"))]
    results = [
        ToolResult(ToolResultData("toolu_1", "ls", "a.png", "", False, data="QUJD", mime_type="image/png")),
        ToolResult(ToolResultData("toolu_2", "view", "no such file", "", True)),
    ]
    return [
        message("user", "Look at these.", *pictures),
        said,
        *(message("tool", result) for result in results),
        message("user", "Quickly, please."),
    ]


def their_conversation(answer: anthropic.types.Message) -> list[Any]:
    """The same, in the words of the SDK."""
    pictures = [
        {"type": "image", "source": PNG},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/b.png"}},
    ]
    listed = [{"type": "text", "text": "a.png"}, {"type": "image", "source": PNG}]
    failed = [{"type": "text", "text": "no such file"}]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": listed},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": failed, "is_error": True},
        {"type": "text", "text": "Quickly, please."},
    ]
    return [
        {"role": "user", "content": [{"type": "text", "text": "Look at these."}, *pictures]},
        answer.to_param(),
        {"role": "user", "content": results},
    ]


async def test_a_request_says_the_same_as_the_sdks(
    anthropic_server: AnthropicServer, open_anthropic, sdk: anthropic.AsyncAnthropic
) -> None:
    """Otherwise the provider would be told something else than its own client would tell it."""
    answer, _ = await asyncio.gather(through_sdk(sdk), replay(anthropic_server, EVERYTHING))
    model = open_anthropic(anthropic_server.url, KEY)
    chunks, _ = await asyncio.gather(collect(model, request()), replay(anthropic_server, EVERYTHING))
    tool = tool_spec("ls", "path")

    asking = asyncio.ensure_future(
        through_sdk(
            sdk,
            messages=their_conversation(answer),
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            tools=[{"name": tool.name, "description": tool.description, "input_schema": tool.schema}],
            cache_control={"type": "ephemeral"},
            thinking={"type": "adaptive", "display": "summarized"},
            output_config={"effort": "high"},
        )
    )
    theirs = await anthropic_server.next_call()
    await theirs.end()
    await asking
    asked = request(
        messages=our_conversation(parts_of(chunks)),
        tools=[tool],
        model=MODEL,
        max_tokens=100,
        reasoning_effort="high",
    )
    collecting = asyncio.ensure_future(collect(model, asked))
    ours = await anthropic_server.next_call()
    await ours.end()
    await collecting

    assert ours.request == theirs.request
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    # The SDK asks for a later version of the API and shows the key as a bearer token, which the API takes as well. Ours
    # is the older pair: every server that imitates this wire knows it.
    assert theirs.headers["authorization"] == f"Bearer {ours.headers['x-api-key']}" == f"Bearer {KEY}"
    assert theirs.headers["anthropic-version"] >= ours.headers["anthropic-version"] == "2023-06-01"
