"""Any stored conversation as one that every provider accepts (I7).

What is on disk may have been cut anywhere by a cancel or a crash. Providers are strict: a tool call is followed by its
results before anything else, ids do not repeat, nothing is empty, and it is our turn to speak at the end. These are
pure functions, and each message depends only on what is at or before its own step: consecutive requests share their
whole prefix, which is what makes a provider's cache work.
"""

from collections.abc import Sequence

import msgspec

from windlass.agent.arguments import BadArguments, parse_arguments
from windlass.wire.messages import (
    Finish,
    Message,
    Part,
    Reasoning,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)

INTERRUPTED = "The tool call was interrupted before it gave a result. It may or may not have had an effect."
NO_OUTPUT = "(no output)"
_NO_ANSWER = "(This answer was stopped before it began.)"
_NO_TEXT = "(empty message)"


def conversation(messages: Sequence[Message]) -> list[Message]:
    """The messages as they are sent: every call answered, no orphan result, nothing empty, the last one not ours."""
    valid: list[Message] = []
    ids = _CallIds()
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        match message.role:
            case "assistant":
                # The results of a step are all that comes before the next answer, wherever in it they are.
                end = _next_answer(messages, position)
                valid += _step(message, messages[position:end], ids)
            case "user" | "system":
                valid.append(_with_content(message, _NO_TEXT))
            case "tool":
                pass  # used by the step it belongs to; one that belongs to none would be refused
    while valid and valid[-1].role not in ("user", "tool"):
        # A provider asked to go on from an answer of its own refuses, or continues it in mid-sentence.
        valid.pop()
    return valid


def _next_answer(messages: Sequence[Message], start: int) -> int:
    for position in range(start, len(messages)):
        if messages[position].role == "assistant":
            return position
    return len(messages)


def _step(answer: Message, following: Sequence[Message], ids: "_CallIds") -> list[Message]:
    """An answer and a result for each of its calls, in the order of the calls."""
    calls = answer.tool_calls
    if not calls:
        return [_with_content(answer, _NO_ANSWER)]
    waiting: dict[str, list[tuple[Message, ToolResultData]]] = {}
    for message in following:
        for part in message.parts:
            if isinstance(part, ToolResult):
                waiting.setdefault(part.data.tool_call_id, []).append((message, part.data))
    renamed: list[ToolCallData] = []
    results: list[Message] = []
    for call in calls:
        id = ids.unique(call.id)
        renamed.append(
            msgspec.structs.replace(call, id=id, name=call.name or "unknown", input=_valid_input(call.input))
        )
        found = waiting.get(call.id)
        source, result = found.pop(0) if found else (answer, _interrupted(call))
        results.append(_result_message(source, result, id, call.name or "unknown"))
    kept: list[Part] = [part for part in answer.parts if isinstance(part, Reasoning) or _is_text(part)]
    return [_replace(answer, [*kept, *(ToolCall(call) for call in renamed)]), *results]


class _CallIds:
    """Ids seen so far. A provider that numbers its calls from zero in every answer would repeat them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def unique(self, wanted: str) -> str:
        id = unique_id(wanted, self._seen)
        self._seen.add(id)
        return id


def unique_id(wanted: str, taken: set[str]) -> str:
    """The id itself if it is free, else with the smallest number that makes it so."""
    base = wanted or "call"
    id, number = base, 1
    while id in taken:
        number += 1
        id = f"{base}_{number}"
    return id


def _with_content(message: Message, instead: str) -> Message:
    """The message without blank texts and its ending; `instead` is said when nothing is left of it."""
    kept: list[Part] = [
        part for part in message.parts if not isinstance(part, Text | Finish | ToolResult) or _is_text(part)
    ]
    if all(isinstance(part, Reasoning) for part in kept):
        kept.append(Text(TextData(instead)))
    return _replace(message, kept)


def _is_text(part: Part) -> bool:
    return isinstance(part, Text) and bool(part.data.text.strip())


def _valid_input(text: str) -> str:
    try:
        parse_arguments(text)
    except BadArguments:
        return "{}"
    return text if text.strip() else "{}"


def _interrupted(call: ToolCallData) -> ToolResultData:
    return ToolResultData(tool_call_id=call.id, name=call.name, content=INTERRUPTED, metadata="", is_error=True)


def _result_message(source: Message, result: ToolResultData, id: str, name: str) -> Message:
    content = result.content if result.content.strip() else NO_OUTPUT
    data = msgspec.structs.replace(result, tool_call_id=id, name=name, content=content)
    return msgspec.structs.replace(source, role="tool", parts=[ToolResult(data)])


def _replace(message: Message, parts: list[Part]) -> Message:
    return msgspec.structs.replace(message, parts=parts)
