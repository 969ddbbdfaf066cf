"""OpenAI's own SDK as the oracle: we ask as it asks, in both protocols. The fake server keeps what each sent."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from model_requests import message, request, tool_spec
from openai_oracle import Chat, Responses, everything, open_wire

from windlass.agent.answer import Answer
from windlass.agent.history import conversation
from windlass.testing.model_call import ModelCall
from windlass.wire.messages import (
    Binary,
    BinaryData,
    Message,
    Reasoning,
    ReasoningData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.model import Chunk, ModelRequest, UsageChunk

IMAGE = "data:image/png;base64,QUJD"
SCHEMA = tool_spec("ls", "path").schema


def our_conversation() -> ModelRequest:
    """A picture, thoughts, two calls, one of which fails and one of which gives a picture, and a word afterwards."""
    calls = [ToolCall(ToolCallData(id, "ls", '{"path":"."}', finished=True)) for id in ("c1", "c2")]
    results = [
        ToolResult(ToolResultData("c1", "ls", "no such directory", "", True)),
        ToolResult(ToolResultData("c2", "ls", "a.png", "", False, data="QUJD", mime_type="image/png")),
    ]
    return request(
        model="gpt-5",
        messages=[
            message("user", "look", Binary(BinaryData("a.png", "image/png", "QUJD"))),
            message("assistant", Reasoning(ReasoningData("of another model", "signed")), "Looking.", *calls),
            *(message("tool", result) for result in results),
            message("user", "go on"),
        ],
        tools=[tool_spec("ls", "path")],
        max_tokens=100,
        reasoning_effort="low",
        session_id="s1",
    )


CHAT_CALL = {"type": "function", "function": {"name": "ls", "arguments": '{"path":"."}'}}
CHAT_BODY: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": IMAGE}}],
        },
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [{"id": "c1", **CHAT_CALL}, {"id": "c2", **CHAT_CALL}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no such directory"},
        {"role": "tool", "tool_call_id": "c2", "content": "a.png"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The picture that the tool ls gave back (call c2):"},
                {"type": "image_url", "image_url": {"url": IMAGE}},
                {"type": "text", "text": "go on"},
            ],
        },
    ],
    "tools": [{"type": "function", "function": {"name": "ls", "description": "The tool ls.", "parameters": SCHEMA}}],
    "max_tokens": 100,
    "reasoning_effort": "low",
}
RESPONSES_CALL = {"type": "function_call", "name": "ls", "arguments": '{"path":"."}'}
RESPONSES_BODY: dict[str, Any] = {
    "model": "gpt-5",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "instructions": "Be brief.",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {**RESPONSES_CALL, "call_id": "c1"},
        {**RESPONSES_CALL, "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": "Error: no such directory"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [
                {"type": "input_text", "text": "a.png"},
                {"type": "input_image", "image_url": IMAGE, "detail": "auto"},
            ],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
    ],
    "tools": [{"type": "function", "name": "ls", "description": "The tool ls.", "parameters": SCHEMA, "strict": False}],
    "parallel_tool_calls": True,
    "max_output_tokens": 100,
    "reasoning": {"effort": "low", "summary": "auto"},
    "prompt_cache_key": "s1",
}


@pytest.fixture(params=[Chat, Responses])
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Chat | Responses]:
    async with open_wire(request.param) as wire:
        yield wire


async def test_a_conversation_is_asked_as_the_sdk_asks_it(wire: Chat | Responses) -> None:
    """Otherwise a provider would refuse, or misread, what its own client says in another way."""
    body = CHAT_BODY if isinstance(wire, Chat) else RESPONSES_BODY
    asked: list[ModelCall] = []
    for asking in (wire.theirs(**body), wire.model.stream(our_conversation(), lambda chunk: None)):
        task = asyncio.ensure_future(asking)
        asked.append(await wire.server.next_call())
        await asked[-1].end()
        await task
    theirs, mine = asked
    assert mine.request == theirs.request
    for header in ("Authorization", "Content-Type"):
        assert mine.headers[header] == theirs.headers[header]


def _bare(items: list[Any]) -> list[Any]:
    """Items without what the API gives and does not need back."""
    left_out = ("id", "status", "annotations", "logprobs")
    plain = [msgspec.json.decode(msgspec.json.encode(item)) for item in items]
    for item in plain:
        for piece in (item, *(item["content"] if isinstance(item.get("content"), list) else ())):
            for field in left_out:
                piece.pop(field, None)
    return plain


async def test_the_second_step_goes_on_from_the_first_as_the_sdk_does() -> None:
    """Otherwise thoughts, words and calls would go back in another order or shape than the provider gave them."""
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    async with open_wire(Responses) as wire:
        assert isinstance(wire, Responses)
        server = wire.server
        # The provider's own way to go on: its output is put behind the input, then come the results.
        task = asyncio.ensure_future(wire.theirs(model="gpt-5", input=[prompt], store=False))
        await everything(await server.next_call())
        await task
        results = [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in ("c1", "c2")]
        task = asyncio.ensure_future(wire.theirs(model="gpt-5", input=[prompt, *wire.output, *results], store=False))
        theirs = await server.next_call()
        await theirs.end()
        await task

        first = request(model="gpt-5")
        answer = Answer("m1", lambda delta: None, set())
        gained: list[Chunk] = []
        task = asyncio.ensure_future(wire.model.stream(first, gained.append))
        await everything(await server.next_call())
        await task
        for chunk in gained:
            if not isinstance(chunk, UsageChunk):
                answer.take(chunk)
        outcomes: list[Message] = [
            message("tool", ToolResult(ToolResultData(call.id, call.name, "ok", "", False))) for call in answer.calls
        ]
        messages = conversation([*first.messages, answer.message("s", "gpt-5", "local"), *outcomes])
        task = asyncio.ensure_future(
            wire.model.stream(msgspec.structs.replace(first, messages=messages), lambda chunk: None)
        )
        mine = await server.next_call()
        await mine.end()
        await task
    assert _bare(mine.request["input"]) == _bare(theirs.request["input"])
