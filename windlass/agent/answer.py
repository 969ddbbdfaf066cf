"""One assistant message while it streams: chunks of a model become deltas for the readers and parts for the history."""

from collections.abc import Callable
from typing import Literal, assert_never

from windlass import limits
from windlass.agent.history import unique_id
from windlass.wire.messages import (
    FinishReason,
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
)
from windlass.wire.model import (
    FinishChunk,
    ModelError,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from windlass.wire.run_events import Delta

PartType = Literal["text", "reasoning", "tool_call"]
ContentChunk = TextChunk | ReasoningChunk | ToolCallChunk | FinishChunk


class _GrowingPart:
    """Text is kept in pieces: adding to one long string at every token would cost quadratic time."""

    def __init__(self, type: PartType, id: str = "", name: str = "") -> None:
        self.type = type
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self.signature = ""

    def whole(self) -> Part:
        text = "".join(self.pieces)
        match self.type:
            case "text":
                return Text(TextData(text))
            case "reasoning":
                return Reasoning(ReasoningData(thinking=text, signature=self.signature))
            case "tool_call":
                return ToolCall(ToolCallData(id=self.id, name=self.name, input=text, finished=True))


class Answer:
    """Collects one attempt at an answer. A retry makes a new one for the same message.

    `takes_calls`: without it tool calls are passed over, for an answer that is to be words alone.
    """

    def __init__(
        self, message_id: str, emit: Callable[[Delta], None], taken_call_ids: set[str], *, takes_calls: bool = True
    ) -> None:
        self.message_id = message_id
        self._takes_calls = takes_calls
        self._emit = emit
        self._taken = set(taken_call_ids)
        self._parts: list[_GrowingPart] = []
        self._index: dict[tuple[PartType, int], int] = {}
        self._characters = 0
        self._finish: FinishReason = "end_turn"

    @property
    def has_begun(self) -> bool:
        return bool(self._parts)

    @property
    def calls(self) -> list[ToolCallData]:
        return [part.data for part in self.parts() if isinstance(part, ToolCall)]

    @property
    def reason(self) -> FinishReason:
        """Why it ended, as we see it: servers say `stop` beside tool calls, and `tool_calls` without any."""
        if self._finish in ("max_tokens", "content_filter"):
            return self._finish
        if any(part.type == "tool_call" for part in self._parts):
            return "tool_use"
        # A model cannot cancel a run; only people can, and then the owner of the run writes it.
        return "end_turn" if self._finish in ("end_turn", "tool_use") else "unknown"

    @property
    def is_empty(self) -> bool:
        """No word and no call, and no reason given for it either."""
        said = any(part.type != "reasoning" and (part.id or "".join(part.pieces).strip()) for part in self._parts)
        return not said and self.reason in ("end_turn", "unknown")

    def take(self, chunk: ContentChunk) -> None:
        """Add a chunk and tell the readers. Raises ModelError when the answer outgrows its bounds."""
        match chunk:
            case TextChunk():
                self._gain("text", "text", chunk.text, chunk.block)
            case ReasoningChunk():
                self._gain("reasoning", "thinking", chunk.text, chunk.block)
                self._sign(chunk.signature, chunk.block)
            case ToolCallChunk():
                if self._takes_calls:
                    self._take_call(chunk)
            case FinishChunk():
                if chunk.reason == "error":
                    raise ModelError("The model ended its answer with an error.")
                self._finish = chunk.reason
            case _:
                assert_never(chunk)

    def parts(self) -> list[Part]:
        return [part.whole() for part in self._parts]

    def message(self, session_id: str, model: str, provider: str) -> Message:
        """The whole message, for the conversation that goes on from here."""
        return Message(
            id=self.message_id,
            role="assistant",
            session_id=session_id,
            parts=self.parts(),
            model=model,
            provider=provider,
            created_at=0,
            updated_at=0,
        )

    def _gain(self, type: PartType, field: str, text: str, block: int) -> None:
        if not text:
            return
        self._grow(len(text))
        position = self._index.get((type, block))
        if position is None:
            position = self._add((type, block), _GrowingPart(type))
            self._emit(Delta(self.message_id, position, field, text, part_type=type))
        else:
            self._emit(Delta(self.message_id, position, field, text))
        self._parts[position].pieces.append(text)

    def _sign(self, signature: str, block: int) -> None:
        if not signature:
            return
        self._grow(len(signature))
        position = self._index.get(("reasoning", block))
        if position is None:
            # Thoughts that the provider hides: there is nothing to read, but it wants them back all the same.
            position = self._add(("reasoning", block), _GrowingPart("reasoning"))
            self._emit(Delta(self.message_id, position, "thinking", "", part_type="reasoning"))
        self._parts[position].signature += signature
        self._emit(Delta(self.message_id, position, "signature", signature))

    def _take_call(self, chunk: ToolCallChunk) -> None:
        self._grow(len(chunk.input))
        key: tuple[PartType, int] = ("tool_call", chunk.index)
        position = self._index.get(key)
        if position is None:
            # Results are matched by id: a repeated one would give a call another call's result.
            id = unique_id(chunk.id, self._taken)
            self._taken.add(id)
            position = self._add(key, _GrowingPart("tool_call", id, chunk.name))
            first = Delta(self.message_id, position, "input", chunk.input, "tool_call", id, chunk.name)
            self._emit(first)
        elif chunk.input:
            self._emit(Delta(self.message_id, position, "input", chunk.input))
        self._parts[position].pieces.append(chunk.input)

    def _add(self, key: tuple[PartType, int], part: _GrowingPart) -> int:
        calls = sum(one.type == "tool_call" for one in self._parts)
        if part.type == "tool_call" and calls >= limits.TOOL_CALLS_PER_STEP:
            raise ModelError(f"The model asked for more than {limits.TOOL_CALLS_PER_STEP} tool calls at once.")
        if len(self._parts) >= limits.ANSWER_PARTS:
            raise ModelError(f"The model's answer has more than {limits.ANSWER_PARTS} parts.")
        self._parts.append(part)
        self._index[key] = len(self._parts) - 1
        return len(self._parts) - 1

    def _grow(self, characters: int) -> None:
        self._characters += characters
        if self._characters > limits.MESSAGE_BYTES:
            raise ModelError("The model's answer is too long to be one; it was stopped.")
