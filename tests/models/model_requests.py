"""Factories for the tests of models: requests, and what a stream gave."""

from typing import Any

from windlass.wire.messages import Message, Part, Role, Text, TextData
from windlass.wire.model import Chunk, Model, ModelRequest, ReasoningChunk, TextChunk, ToolCallChunk, ToolSpec


def message(role: Role, *parts: Part | str) -> Message:
    whole = [Text(TextData(part)) if isinstance(part, str) else part for part in parts]
    return Message(
        id="m", role=role, session_id="s", parts=list(whole), model="", provider="", created_at=0, updated_at=0
    )


def request(prompt: str = "hello", **fields: Any) -> ModelRequest:
    fields.setdefault("messages", [message("user", prompt)])
    return ModelRequest(**{"model": "test-model", "system": "Be brief.", "tools": [], **fields})


def tool_spec(name: str, *properties: str) -> ToolSpec:
    schema = {"type": "object", "properties": {property: {"type": "string"} for property in properties}}
    return ToolSpec(name, f"The tool {name}.", schema)


async def collect(model: Model, request: ModelRequest) -> list[Chunk]:
    """The whole answer."""
    chunks: list[Chunk] = []
    await model.stream(request, chunks.append)
    return chunks


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def reasoning_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk))


def calls_of(chunks: list[Chunk]) -> list[tuple[str, str, str]]:
    """(id, name, whole input) of each call, in order."""
    calls: dict[int, list[str]] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            known = calls.setdefault(chunk.index, [chunk.id, chunk.name, ""])
            known[2] += chunk.input
    return [(id, name, input) for id, name, input in calls.values()]
