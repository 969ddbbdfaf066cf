"""Events of a Messages stream become our chunks.

An answer is a row of blocks: texts, thoughts and calls, each begun, filled piece by piece and ended. Kinds of events,
blocks and pieces that we do not know are passed over: the provider says that it will add some.
"""

from typing import Any

import msgspec

from windlass.models.anthropic_request import REDACTED
from windlass.models.incoming_calls import IncomingCall, IncomingCalls
from windlass.models.refusals import Refusals
from windlass.models.sse import DONE
from windlass.wire.messages import FinishReason
from windlass.wire.model import FinishChunk, ModelError, ReasoningChunk, Take, TextChunk, UsageChunk
from windlass.wire.runs import Usage

_FINISH: dict[str, FinishReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "tool_use": "tool_use",
    "refusal": "content_filter",
    # "pause_turn" belongs to tools that the provider runs itself, which we do not ask for.
}


class _TextBlock(msgspec.Struct, tag="text"):
    text: str = ""


class _ThinkingBlock(msgspec.Struct, tag="thinking"):
    thinking: str = ""
    signature: str = ""


class _RedactedBlock(msgspec.Struct, tag="redacted_thinking"):
    data: str = ""


class _CallBlock(msgspec.Struct, tag="tool_use"):
    id: str = ""
    name: str = ""
    input: Any = None  # empty, and then sent in pieces; some servers send it whole


_Block = _TextBlock | _ThinkingBlock | _RedactedBlock | _CallBlock


class _TextDelta(msgspec.Struct, tag="text_delta"):
    text: str = ""


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta"):
    thinking: str = ""


class _SignatureDelta(msgspec.Struct, tag="signature_delta"):
    signature: str = ""


class _InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str = ""


class _Usage(msgspec.Struct):
    """Totals so far. What a later event leaves out has not changed."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Ending(msgspec.Struct, frozen=True):
    stop_reason: str | None = None


class _Begun(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _BlockStart(msgspec.Struct, tag="content_block_start"):
    content_block: _Block
    index: int = 0


class _BlockDelta(msgspec.Struct, tag="content_block_delta"):
    delta: _TextDelta | _ThinkingDelta | _SignatureDelta | _InputDelta
    index: int = 0


class _BlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int = 0


class _MessageStart(msgspec.Struct, tag="message_start"):
    message: _Begun = _Begun()


class _MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: _Ending = _Ending()
    usage: _Usage | None = None


class _MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class _Ping(msgspec.Struct, tag="ping"):
    pass


class _Error(msgspec.Struct, tag="error"):
    error: Any = None


class _WholeMessage(msgspec.Struct, tag="message"):
    """In place of all events, from a server that ignores `stream`."""

    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Usage | None = None


_Event = (
    _BlockDelta
    | _BlockStart
    | _BlockStop
    | _MessageStart
    | _MessageDelta
    | _MessageStop
    | _Ping
    | _Error
    | _WholeMessage
)


class _Kind(msgspec.Struct):
    type: str = ""


class _Outline(msgspec.Struct):
    """An event of which only the kinds are looked at."""

    type: str
    delta: _Kind | None = None
    content_block: _Kind | None = None


_DECODER = msgspec.json.Decoder(_Event)
_OUTLINES = msgspec.json.Decoder(_Outline)
_BLOCKS = {"text", "thinking", "redacted_thinking", "tool_use"}
_DELTAS = {"text_delta", "thinking_delta", "signature_delta", "input_json_delta"}
_EVENTS = {
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "message",
}


class ChunkReader:
    """Reads the events of one answer, in order, and hands their chunks to `take`."""

    def __init__(self, provider: str, refusals: Refusals, take: Take) -> None:
        self._take = take
        self._provider = provider
        self._refusals = refusals
        self._decode = _DECODER.decode
        self._calls = IncomingCalls(provider, take)
        self._by_block: dict[int, IncomingCall] = {}
        self._whole_inputs: dict[int, Any] = {}
        self._usage: _Usage | None = None
        self._stop_reason = ""
        self._done = False
        self.has_begun = False

    def read(self, data: bytes) -> bool:
        """Hand on the chunks of one event; raises ModelError for an error and for what is not an event.

        Whether it was the last one.
        """
        try:
            event = self._decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._read_unknown(data)
        # By the exact type and the frequent one first: this line is passed for every token.
        if type(event) is _BlockDelta:
            delta = event.delta
            if type(delta) is _TextDelta:
                if delta.text:
                    self._take(TextChunk(delta.text, event.index))
            else:
                self._read_delta(event.index, delta)
            return False
        return self._read_event(event)

    def finish(self) -> None:
        """Hand on what is known only at the end. One that just stops is an error: it would pass for a whole answer."""
        if not self._stop_reason and not self._done:
            raise ModelError(f"{self._provider} closed the connection in the middle of its answer.", retryable=True)
        for index in list(self._whole_inputs):
            self._end_block(index)
        self._calls.announce_all()
        if self._stop_reason == "model_context_window_exceeded" and not self.has_begun:
            raise self._refusals.overflow("the context window is full")
        self.tell_usage()
        default: FinishReason = "tool_use" if self._calls else "end_turn"
        self._take(FinishChunk(_FINISH.get(self._stop_reason, "unknown") if self._stop_reason else default))

    def tell_usage(self) -> None:
        """Hand on what is known of it, once."""
        usage, self._usage = self._usage, None
        if usage is not None:
            self._take(UsageChunk(_our_usage(usage)))

    def _read_event(self, event: _Event) -> bool:
        match event:
            case _BlockDelta():
                self._read_delta(event.index, event.delta)
            case _BlockStart():
                self._begin_block(event.index, event.content_block)
            case _BlockStop():
                self._end_block(event.index)
            case _MessageStart():
                self._gain_usage(event.message.usage)
            case _MessageDelta():
                self._gain_usage(event.usage)
                self._stop_reason = event.delta.stop_reason or self._stop_reason
            case _MessageStop():
                self._done = True
            case _Error():
                raise self._refusals.from_stream(event.error)
            case _WholeMessage():
                self._read_whole(event)
            case _Ping():
                pass
        return self._done

    def _read_delta(self, index: int, delta: _TextDelta | _ThinkingDelta | _SignatureDelta | _InputDelta) -> None:
        match delta:
            case _TextDelta():
                self._say(index, delta.text)
            case _ThinkingDelta():
                self._think(index, delta.thinking, "")
            case _SignatureDelta():
                self._think(index, "", delta.signature)
            case _InputDelta():
                # Without a call: it belongs to a block of a kind that we passed over.
                if call := self._by_block.get(index):
                    self._whole_inputs.pop(index, None)
                    call.gain(delta.partial_json)

    def _begin_block(self, index: int, block: _Block) -> None:
        self.has_begun = True
        match block:
            case _TextBlock():
                self._say(index, block.text)
            case _ThinkingBlock():
                self._think(index, block.thinking, block.signature)
            case _RedactedBlock():
                self._think(index, "", f"{REDACTED}{block.data}")
            case _CallBlock():
                call = self._by_block[index] = self._calls.begin(block.id)
                if block.input:
                    self._whole_inputs[index] = block.input
                call.gain("", block.name)

    def _end_block(self, index: int) -> None:
        whole = self._whole_inputs.pop(index, None)
        if whole is not None:
            self._by_block[index].gain(msgspec.json.encode(whole).decode())

    def _say(self, index: int, text: str) -> None:
        if text:
            self._take(TextChunk(text, index))

    def _think(self, index: int, text: str, signature: str) -> None:
        if text or signature:
            self._take(ReasoningChunk(text, signature, index))

    def _read_whole(self, message: _WholeMessage) -> None:
        for index, block in enumerate(message.content):
            self._begin_block(index, block)
            self._end_block(index)
        self._gain_usage(message.usage)
        self._stop_reason = message.stop_reason or ""
        self._done = True

    def _gain_usage(self, usage: _Usage | None) -> None:
        if usage is None:
            return
        if self._usage is None:
            self._usage = _Usage()
        for field in _Usage.__struct_fields__:
            value = getattr(usage, field)
            if value is not None:
                setattr(self._usage, field, value)

    def _read_unknown(self, data: bytes) -> bool:
        """An event that we cannot read: passed over if it is of a new kind, else the answer is broken."""
        if data == DONE:  # after an answer that came whole
            return self._done
        try:
            outline = _OUTLINES.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            outline = _Outline("message")  # a kind that we know: it is broken, not new
        new_block = outline.content_block is not None and outline.content_block.type not in _BLOCKS
        new_delta = outline.delta is not None and outline.delta.type not in _DELTAS
        is_new = {"content_block_start": new_block, "content_block_delta": new_delta}
        if is_new.get(outline.type, outline.type not in _EVENTS):
            return False
        raise ModelError(
            f"{self._provider} sent something that is not an event of a message, or only a part of one.", retryable=True
        )


def _our_usage(usage: _Usage) -> Usage:
    """The provider counts what it read from its cache and wrote to it apart; we count all that was sent."""
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + read + written, usage.output_tokens or 0, read, written)
