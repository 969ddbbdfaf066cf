"""Events of a Responses stream become our chunks.

An answer is a list of items (texts, thoughts, calls), each built up by events that name its place in the list. What
leaves here: the first piece of a call has its id and name, thoughts get their signature when they are complete, usage
comes once, a finish comes last. What a server sends only at the end of an item or of the answer is taken from there.
"""

from typing import Any

import msgspec

from windlass import limits
from windlass.models.incoming_calls import IncomingCall, IncomingCalls
from windlass.models.refusals import Refusals
from windlass.models.responses_events import (
    EVENT,
    RESPONSE,
    CachedTokens,
    Event,
    Item,
    Response,
    TokenUsage,
    is_foreign,
    item_of,
    items_of,
)
from windlass.models.responses_thoughts import signature_of
from windlass.models.sse import DONE
from windlass.wire.messages import FinishReason
from windlass.wire.model import FinishChunk, ModelError, ReasoningChunk, Take, TextChunk, UsageChunk
from windlass.wire.runs import Usage

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "content_filter",
}


class ResponsesReader:
    """Reads the events of one answer, in order, and hands their chunks to `take`."""

    def __init__(self, provider: str, refusals: Refusals, take: Take) -> None:
        self._take = take
        self._provider = provider
        self._refusals = refusals
        self._decode = EVENT.decode
        self._calls = IncomingCalls(provider, take)
        self._call_at: dict[int, IncomingCall] = {}
        self._spoken: set[int] = set()  # the texts of which something has come
        self._thoughts: dict[int, int] = {}  # the newest part of the thoughts that have come
        self._ended: set[int] = set()
        self._response: Response | None = None

    def read(self, data: bytes) -> bool:
        """Hand on the chunks of one event; raises ModelError for an error and for what is not an event.

        Whether it was the last one.
        """
        if data == DONE:
            return True
        try:
            event = self._decode(data)
            if event.type == "response.output_text.delta":  # nearly all of them
                self._say(event.delta, event.output_index)
                return False
            return self._read_other(event, data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if isinstance(error, msgspec.ValidationError) and is_foreign(data):
                return False
            raise ModelError(
                f"{self._provider} sent something that is not a response, or only a part of one.", retryable=True
            ) from None

    def finish(self) -> None:
        """Hand on what is known only at the end. One that just stops is an error: it would pass for a whole answer."""
        response = self._response
        if response is None:
            raise ModelError(f"{self._provider} closed the connection in the middle of its answer.", retryable=True)
        self._calls.announce_all()
        if response.usage is not None:
            self._take(UsageChunk(_our_usage(response.usage)))
        self._take(FinishChunk(self._reason(response)))

    def _read_other(self, event: Event, data: bytes) -> bool:
        match event.type:
            case "response.function_call_arguments.delta":
                self._call(event.output_index).gain(_text(event.delta))
            case "response.function_call_arguments.done":
                self._complete_call(event.output_index, _text(event.arguments))
            case "response.reasoning_summary_text.delta":
                self._think(event.delta, event.output_index, event.summary_index)
            case "response.reasoning_text.delta":
                self._think(event.delta, event.output_index)
            case "response.refusal.delta":
                self._say(event.delta, event.output_index)
            case "response.output_item.added":
                self._begin_item(event.output_index, item_of(event.item))
            case "response.output_item.done":
                self._end_item(event.output_index, item_of(event.item))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end(RESPONSE.decode(event.response))
                return True
            case "error":
                raise self._refusals.from_stream(event.error or {"code": event.code, "message": event.message})
            case "":
                return self._read_untyped(event, data)
            case _:
                pass  # a kind of event that is newer than we are, or of no use to us
        return False

    def _read_untyped(self, event: Event, data: bytes) -> bool:
        if event.error is not None:
            raise self._refusals.from_stream(event.error)
        response = RESPONSE.decode(data)  # from a server that ignores `stream`
        if response.status is None:
            return False
        self._end(response)
        return True

    # -- items --------------------------------------------------------------------------------------------------------

    def _say(self, text: Any, index: int) -> None:
        if isinstance(text, str) and text:
            self._spoken.add(index)
            self._take(TextChunk(text, index))

    def _think(self, text: Any, index: int, part: int = 0) -> None:
        if isinstance(text, str) and text:
            between = "\n\n" if self._thoughts.get(index, part) != part else ""
            self._thoughts[index] = part
            self._take(ReasoningChunk(between + text, block=index))

    def _call(self, index: int) -> IncomingCall:
        call = self._call_at.get(index)
        if call is None:
            call = self._call_at[index] = self._calls.begin("")
        return call

    def _complete_call(self, index: int, arguments: str) -> None:
        """The whole arguments: from a server that sends them in no pieces, or not in all."""
        call = self._call(index)
        call.gain(arguments[call.characters :])

    def _begin_item(self, index: int, item: Item) -> None:
        if item.type == "function_call":
            self._call(index).gain("", item.name or "", item.call_id or item.id or "")

    def _end_item(self, index: int, item: Item) -> None:
        if index in self._ended:
            return
        if len(self._ended) >= limits.ANSWER_PARTS:
            raise ModelError(f"{self._provider} sent an answer of more than {limits.ANSWER_PARTS} parts.")
        self._ended.add(index)
        match item.type:
            case "message":
                if index not in self._spoken:
                    self._say("".join(piece.text or piece.refusal for piece in item.content or ()), index)
            case "function_call":
                self._begin_item(index, item)
                self._complete_call(index, item.arguments or "")
            case "reasoning":
                self._end_thoughts(index, item)
            case _:
                pass

    def _end_thoughts(self, index: int, item: Item) -> None:
        if index not in self._thoughts:
            for part, piece in enumerate(item.summary or item.content or ()):
                self._think(piece.text, index, part)
        is_plain = bool(item.content) and index in self._thoughts
        signature = signature_of(item.id or "", item.encrypted_content or "", is_plain)
        if signature:
            self._take(ReasoningChunk("", signature, index))

    # -- the end ------------------------------------------------------------------------------------------------------

    def _end(self, response: Response) -> None:
        if response.status in ("failed", "cancelled") or response.error is not None:
            raise self._refusals.from_stream(response.error or {"message": f"The response has {response.status}."})
        if not self._ended:
            for index, item in enumerate(items_of(response.output)):
                self._end_item(index, item)
        self._response = response

    def _reason(self, response: Response) -> FinishReason:
        if response.status == "incomplete":
            details = response.incomplete_details
            return _INCOMPLETE.get((details.reason if details else None) or "", "unknown")
        return "tool_use" if self._calls else "end_turn"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _our_usage(usage: TokenUsage) -> Usage:
    details = usage.input_tokens_details or CachedTokens()
    return Usage(
        usage.input_tokens or 0, usage.output_tokens or 0, details.cached_tokens or 0, details.cache_write_tokens or 0
    )
