"""The port between an agent and a model: one request, a stream of chunks.

An adapter (`models/`) turns these into a provider's wire and back; the agent never sees which provider it talks to.
"""

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from windlass.wire.messages import FinishReason, Message
from windlass.wire.runs import Usage


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model is told of it; `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """`messages` is a valid conversation: every tool call in it has its result."""

    model: str
    system: str
    messages: list[Message]
    tools: list[ToolSpec]
    max_tokens: int = 0
    reasoning_effort: str = ""
    session_id: str = ""
    call_number: int = 0


class TextChunk(msgspec.Struct, frozen=True):
    """More of the text in `block`: an answer may have several, with thoughts and calls between them."""

    text: str
    block: int = 0


class ReasoningChunk(msgspec.Struct, frozen=True):
    """More of the thoughts in `block`. `signature` is what the provider wants back with them, opaque to everyone but
    its adapter; thoughts that it hides have a signature and no text."""

    text: str
    signature: str = ""
    block: int = 0


class ToolCallChunk(msgspec.Struct, frozen=True):
    """A piece of the call at `index`: the first has `id` and `name`, all have more of the `input` (JSON text)."""

    index: int
    input: str
    id: str = ""
    name: str = ""


class FinishChunk(msgspec.Struct, frozen=True):
    reason: FinishReason


class UsageChunk(msgspec.Struct, frozen=True):
    usage: Usage


Chunk = TextChunk | ReasoningChunk | ToolCallChunk | FinishChunk | UsageChunk


Take = Callable[[Chunk], None]


class ModelError(Exception):
    """The provider refused or broke off. `message` is for a person and never holds a key.

    `retryable` says whether the same request may be sent again; `retry_after` is what it asked for, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        kind: Literal["auth", "limit", "overflow", "refused", "broken", "unreachable"] = "broken",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after
        self.kind = kind


class Model(Protocol):
    """One provider's streaming interface."""

    async def stream(self, request: ModelRequest, take: Take) -> None:
        """Send the request and call `take` with each chunk that comes back, in order; raise ModelError.

        A call and not an iterator: a chunk then costs one function call, where an iterator would wake every frame
        between the socket and the agent. Cancelling the caller drops the connection before this returns.
        """

    async def aclose(self) -> None:
        """Close idle connections."""
