"""Thoughts on the chat-completions protocol: what a provider wants back of them, and under which name.

The protocol itself has none, so each provider has its own way. Whatever it sent goes back as it came, and only to it.
It is kept in the `signature` of reasoning parts, which only this file reads: the name of the field that thoughts came
by, or a JSON text with what is opaque (the signatures that Google puts beside tool calls, the details of OpenRouter).
"""

from typing import Any, Literal

import msgspec

from windlass import limits
from windlass.wire.messages import Message, Reasoning, ReasoningData
from windlass.wire.model import ModelError

ThoughtField = Literal["reasoning_content", "reasoning"]
THOUGHT_FIELDS: tuple[ThoughtField, ...] = ("reasoning_content", "reasoning")
OPAQUE_BLOCK = 1  # thoughts in words are block 0
_GROWING = ("text", "summary")  # of one detail, which comes in pieces


class _Opaque(msgspec.Struct, frozen=True, omit_defaults=True):
    """`calls`: what stood beside a call, by the call's number in its answer. `details`: of the answer as a whole."""

    calls: dict[str, Any] = {}
    details: list[dict[str, Any]] = []


_NOTHING = _Opaque()
_DECODER = msgspec.json.Decoder(_Opaque)


class OpaqueThoughts:
    """Collects what one answer has of them."""

    def __init__(self) -> None:
        self._calls: dict[str, Any] = {}
        self._details: list[dict[str, Any]] = []
        self._pieces: list[dict[str, list[str]]] = []
        self._growing: dict[tuple[str, str], int] = {}
        self._characters = 0

    def beside_call(self, index: int, extra: Any) -> None:
        self._calls[str(index)] = extra

    def gain(self, details: Any) -> None:
        """More of OpenRouter's details: texts and summaries come in pieces of the same number, the rest is whole."""
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                self._gain(detail)

    def signature(self) -> str:
        """What to keep; nothing when the words alone say all that there is."""
        signed = any(detail.get("signature") or detail.get("data") for detail in self._details)
        if not self._calls and not signed:
            return ""
        whole = [
            {**detail, **{name: "".join(texts) for name, texts in pieces.items()}}
            for detail, pieces in zip(self._details, self._pieces, strict=True)
        ]
        return msgspec.json.encode(_Opaque(self._calls, whole if signed else [])).decode()

    def _gain(self, detail: dict[str, Any]) -> None:
        at = self._place(detail)
        for name, value in detail.items():
            if name in _GROWING and isinstance(value, str):
                self._pieces[at].setdefault(name, []).append(value)
            elif value is not None:
                self._details[at][name] = value
            self._characters += len(value) if isinstance(value, str) else 1
        if self._characters > limits.MESSAGE_BYTES or len(self._details) > limits.ANSWER_PARTS:
            raise ModelError("The model's thoughts are too long to be any; the answer was stopped.")

    def _place(self, detail: dict[str, Any]) -> int:
        key = (str(detail.get("type")), str(detail.get("index")))
        at = self._growing.get(key)
        if at is None or "data" in detail:
            self._details.append({})
            self._pieces.append({})
            at = len(self._details) - 1
            if "data" not in detail:
                self._growing[key] = at
        return at


class ThoughtsSent:
    """Which thoughts go back: those of turns with tool calls, under the name by which the provider sent them.

    Some providers refuse such a turn without them; and a name that a provider does not use itself, it may refuse.
    """

    def __init__(self) -> None:
        self._field = ""
        self._turn_has_calls = False

    def turn_begins(self) -> None:
        self._turn_has_calls = False

    def of(self, message: Message) -> dict[str, Any]:
        """The fields of an answer that its provider had, to be sent to it again."""
        thoughts = [part.data for part in message.parts if isinstance(part, Reasoning)]
        self._field = next((one.signature for one in thoughts if one.signature in THOUGHT_FIELDS), self._field)
        self._turn_has_calls = self._turn_has_calls or bool(message.tool_calls)
        if not self._turn_has_calls:
            return {}
        if details := _opaque(thoughts).details:
            return {"reasoning_details": details}
        if not self._field:
            return {}
        # Also when there are none this time: a provider that checks for the field misses it then, too.
        return {self._field: "".join(one.thinking for one in thoughts if one.signature in THOUGHT_FIELDS)}


def beside_calls(message: Message) -> dict[str, Any]:
    """What its provider put beside the calls of an answer, by the call's number."""
    return _opaque([part.data for part in message.parts if isinstance(part, Reasoning)]).calls


def _opaque(thoughts: list[ReasoningData]) -> _Opaque:
    for one in thoughts:
        if one.signature.startswith("{"):
            try:
                return _DECODER.decode(one.signature)
            except (msgspec.DecodeError, RecursionError):
                continue  # another protocol's
    return _NOTHING
