"""Events of a chat-completions stream become our chunks.

Servers differ in the corners: calls come in pieces by index, whole, without an index, or all with index 0; usage comes
once at the end or again with every event. What leaves here is always the same: the first piece of a call has its id and
name, usage comes once, a finish comes last.
"""

from typing import Any

import msgspec

from windlass.models.incoming_calls import IncomingCall, IncomingCalls
from windlass.models.openai_thoughts import OPAQUE_BLOCK, OpaqueThoughts, ThoughtField
from windlass.models.refusals import Refusals
from windlass.models.sse import DONE
from windlass.wire.messages import FinishReason
from windlass.wire.model import (
    FinishChunk,
    ModelError,
    ReasoningChunk,
    Take,
    TextChunk,
    UsageChunk,
)
from windlass.wire.runs import Usage

_FINISH: dict[str, FinishReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "end_turn": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
}
_FAILED = ("error", "insufficient_system_resource")  # not an end but a failure, and whole answers are not like that


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None  # text; some local servers send the object itself


class _CallPiece(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None  # of Google, who wants it back


class _Delta(msgspec.Struct):
    content: Any = None  # text; some send a list of typed parts
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None  # of OpenRouter, beside the words; some of its models want them back
    refusal: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None  # in place of delta, from a server that ignores `stream`
    finish_reason: str | None = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _CachedTokens | None = None
    prompt_cache_hit_tokens: int | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)


class ChunkReader:
    """Reads the events of one answer, in order, and hands their chunks to `take`."""

    def __init__(self, provider: str, refusals: Refusals, take: Take) -> None:
        self._take = take
        self._provider = provider
        self._refusals = refusals
        self._decode = _DECODER.decode
        self._calls = IncomingCalls(provider, take)
        self._by_index: dict[int, IncomingCall] = {}
        self._usage: _Usage | None = None
        self._finish = ""
        self._done = False
        self._has_thought = False
        self._opaque = OpaqueThoughts()

    def read(self, data: bytes) -> bool:
        """Hand on the chunks of one event; raises ModelError for an error object and for what is not an event.

        Whether it was the last one.
        """
        if data == DONE:
            self._done = True
            return True
        try:
            event = self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ModelError(
                f"{self._provider} sent something that is not a chat completion, or only a part of one.", retryable=True
            ) from None
        if event.error is not None:
            raise self._refusals.from_stream(event.error)
        # The last one counts: servers that repeat it send running totals, which must not be added up.
        self._usage = event.usage or self._usage
        for choice in event.choices or ():
            if choice.index == 0:
                self._read_choice(choice)
        return False

    def finish(self) -> None:
        """Hand on what is known only at the end. One that just stops is an error: it would pass for a whole answer."""
        if not self._finish and not self._done:
            raise ModelError(f"{self._provider} closed the connection in the middle of its answer.", retryable=True)
        self._calls.announce_all()
        if signature := self._opaque.signature():
            self._take(ReasoningChunk("", signature, OPAQUE_BLOCK))
        if self._usage is not None:
            self._take(UsageChunk(_our_usage(self._usage)))
        if self._finish in _FAILED:
            raise ModelError(f"{self._provider} broke its answer off ({self._finish}).", retryable=True)
        default: FinishReason = "tool_use" if self._calls else "end_turn"
        self._take(FinishChunk(_FINISH.get(self._finish, "unknown") if self._finish else default))

    def _read_choice(self, choice: _Choice) -> None:
        delta = choice.delta or choice.message
        if delta is not None:
            thoughts = delta.reasoning_content or delta.reasoning
            if thoughts is not None and (reasoning := _text(thoughts)):
                self._think(reasoning, "reasoning_content" if delta.reasoning_content else "reasoning")
            if delta.reasoning_details is not None:
                self._opaque.gain(delta.reasoning_details)
            if delta.content.__class__ is list and (reasoning := _thoughts_within(delta.content)):
                self._take(ReasoningChunk(reasoning))  # unsigned: nobody wants these back
            if text := _text(delta.content) or delta.refusal:
                self._take(TextChunk(text))
            for piece in delta.tool_calls or ():
                self._read_piece(piece)
        self._finish = choice.finish_reason or self._finish

    def _think(self, text: str, field: ThoughtField) -> None:
        # The name of the field is the signature: some servers want thoughts back, and only under the name they use.
        self._take(ReasoningChunk(text, "" if self._has_thought else field))
        self._has_thought = True

    def _read_piece(self, piece: _CallPiece) -> None:
        function = piece.function or _Function()
        name = function.name or ""
        call = self._call_of(piece, name)
        call.gain(_arguments(function.arguments), name)
        if piece.extra_content is not None:
            self._opaque.beside_call(call.index, piece.extra_content)

    def _call_of(self, piece: _CallPiece, name: str) -> IncomingCall:
        """The call a piece belongs to: by its index, unless it clearly begins another (a new id with a name)."""
        known = self._calls.newest if piece.index is None else self._by_index.get(piece.index)
        begins = bool(name) and (piece.id != known.id if known and piece.id else piece.index is None)
        if known is not None and not begins:
            return known
        call = self._calls.begin(piece.id or "")
        if piece.index is not None:
            self._by_index[piece.index] = call
        return call


def _text(value: Any) -> str:
    """Text that is a string or a list of parts with a text each."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
    return ""


def _thoughts_within(parts: list[Any]) -> str:
    """Thoughts that are typed parts of the content, as Mistral sends them."""
    return "".join(_text(part.get("thinking")) for part in parts if isinstance(part, dict))


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _our_usage(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    read = (details.cached_tokens if details else None) or usage.prompt_cache_hit_tokens or 0
    written = (details.cache_write_tokens if details else None) or 0
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, read, written)
