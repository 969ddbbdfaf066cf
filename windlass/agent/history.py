"""Any stored conversation as one that every provider accepts (I7).

What is on disk may have been cut anywhere by a cancel or a crash. Providers are strict: a tool call is followed by its
results before anything else, ids do not repeat, nothing is empty, and it is our turn to speak at the end. These are
pure functions, and each message depends only on what is at or before its own step: consecutive requests share their
whole prefix, which is what makes a provider's cache work.
"""

from collections.abc import Iterator, Sequence

import msgspec

from windlass import limits
from windlass.agent.arguments import BadArguments, parse_arguments
from windlass.agent.images import without_images
from windlass.agent.summary import framed, is_whole
from windlass.wire.messages import (
    Binary,
    ImageUrl,
    Message,
    Part,
    Reasoning,
    Role,
    ShellCommand,
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
_NO_SUMMARY = "(This summary was not finished.)"
_NO_TEXT = "(empty message)"
_NO_BEGINNING = "(The beginning of this conversation is missing.)"


def conversation(messages: Sequence[Message], *, images: bool = True) -> list[Message]:
    """The messages as they are sent: every call answered, no orphan result, nothing empty, the last one not ours.

    A whole summary stands for everything before it. Without `images` each picture is a note that there was one.
    """
    return History(images=images).sent(messages)


class History:
    """The same for a conversation that only grows: what cannot change any more is made once (B17).

    Whoever puts another conversation in its place says so with `forget`.
    """

    def __init__(self, *, images: bool = True) -> None:
        self._images = images
        self.forget()

    def forget(self) -> None:
        self._settled: list[Message] = []  # made from the first `_read` messages
        self._ids = _CallIds()
        self._read = 0

    def sent(self, messages: Sequence[Message]) -> list[Message]:
        self._skip(messages)
        newest = next((at for at in range(len(messages) - 1, self._read, -1) if _is_answer(messages[at])), self._read)
        self._settle(messages, newest)
        valid, ids = list(self._settled), self._ids.copy()
        self._extend(valid, ids, messages[newest:])  # the newest step: more results may come
        while valid and valid[-1].role not in ("user", "tool"):
            # A provider asked to go on from an answer of its own refuses, or continues it in mid-sentence.
            valid.pop()
        return valid

    def read(self, messages: Sequence[Message]) -> Iterator[int]:
        """Make a long beginning in slices; after each it says how many messages have been read."""
        self._skip(messages)
        while True:
            far = range(self._read + limits.HISTORY_SLICE_MESSAGES, len(messages))
            end = next((at for at in far if _is_answer(messages[at])), None)
            if end is None:
                return
            self._settle(messages, end)
            yield end

    def _skip(self, messages: Sequence[Message]) -> None:
        """Nothing before the newest whole summary is sent: it need not be made."""
        if not self._read:
            self._read = next((at for at in range(len(messages) - 1, 0, -1) if is_whole(messages[at])), 0)

    def _settle(self, messages: Sequence[Message], end: int) -> None:
        """Make all before `end`, where an answer stands: no result of what is before it can come any more."""
        self._extend(self._settled, self._ids, messages[self._read : end])
        self._read = end

    def _extend(self, valid: list[Message], ids: "_CallIds", messages: Sequence[Message]) -> None:
        if not self._images:
            messages = without_images(messages)
        for position, message in enumerate(messages):
            if is_whole(message):
                valid.clear()
                ids.clear()
            sent = _sent(messages, position, valid, ids)
            if sent and sent[0].role == "assistant" and not valid:
                # Some providers insist that people speak first.
                valid.append(_replace(message, [Text(TextData(_NO_BEGINNING))], role="user"))
            valid += sent


def _is_answer(message: Message) -> bool:
    return message.role == "assistant"


def _sent(messages: Sequence[Message], position: int, before: Sequence[Message], ids: "_CallIds") -> list[Message]:
    """What is sent for one stored message, given what is sent before it."""
    message = messages[position]
    if message.role == "tool":
        return []  # used by the step it belongs to; one that belongs to none would be refused
    if message.role != "assistant":
        return [_of_user(message)]
    if is_whole(message):
        return [framed(message)]
    if message.is_summary_message:
        return _unfinished_summary(message, before)
    if any(isinstance(part, ShellCommand) for part in message.parts):
        return [_of_user(message)]
    return _step(message, _results(messages, position + 1) if message.tool_calls else {}, ids)


def _unfinished_summary(message: Message, before: Sequence[Message]) -> list[Message]:
    """It says nothing, and only ever stands for an answer where one is needed: after the words that asked for it."""
    if not before or before[-1].role != "user":
        return []
    return [_replace(message, [Text(TextData(_NO_SUMMARY))])]


def _step(answer: Message, waiting: "_Results", ids: "_CallIds") -> list[Message]:
    """An answer with its parts in their order (thoughts belong to what follows them), and a result for each call."""
    said: list[Part] = []
    results: list[Message] = []
    for part in answer.parts:
        if isinstance(part, ToolCall):
            call = part.data
            id, name = ids.unique(call.id), call.name or "unknown"
            said.append(ToolCall(msgspec.structs.replace(call, id=id, name=name, input=_valid_input(call.input))))
            found = waiting.get(call.id)
            source, result = found.pop(0) if found else (answer, _interrupted(call))
            results.append(_result_message(source, result, id, name))
        elif _is_text(part) or _is_thought(part):
            said.append(part)
    if all(isinstance(part, Reasoning) for part in said):
        said.append(Text(TextData(_NO_ANSWER)))
    return [_replace(answer, said), *results]


_Results = dict[str, list[tuple[Message, ToolResultData]]]  # by the ids of the calls


def _results(messages: Sequence[Message], start: int) -> _Results:
    """The results of a step are all that comes before the next answer, wherever in it they are."""
    found: _Results = {}
    for position in range(start, len(messages)):
        message = messages[position]
        if message.role == "assistant":
            break
        for part in message.parts:
            if isinstance(part, ToolResult):
                found.setdefault(part.data.tool_call_id, []).append((message, part.data))
    return found


class _CallIds:
    """Ids seen so far. A provider that numbers its calls from zero in every answer would repeat them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def unique(self, wanted: str) -> str:
        id = unique_id(wanted, self._seen)
        self._seen.add(id)
        return id

    def clear(self) -> None:
        self._seen.clear()

    def copy(self) -> "_CallIds":
        again = _CallIds()
        again._seen = set(self._seen)
        return again


def unique_id(wanted: str, taken: set[str]) -> str:
    """The id itself if it is free, else with the smallest number that makes it so."""
    base = wanted or "call"
    id, number = base, 1
    while id in taken:
        number += 1
        id = f"{base}_{number}"
    return id


def _of_user(message: Message) -> Message:
    """What a person said, sent along or ran. What a system said is sent so, too: not every provider has such a role."""
    said = [part for part in message.parts if _is_text(part) or isinstance(part, Binary | ImageUrl | ShellCommand)]
    return _replace(message, said or [Text(TextData(_NO_TEXT))], role="user")


def _is_text(part: Part) -> bool:
    return isinstance(part, Text) and bool(part.data.text.strip())


def _is_thought(part: Part) -> bool:
    """Thoughts that a provider hides have no text; without a signature either there is nothing to send back."""
    return isinstance(part, Reasoning) and bool(part.data.thinking.strip() or part.data.signature)


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


def _replace(message: Message, parts: list[Part], role: Role | None = None) -> Message:
    return msgspec.structs.replace(message, parts=parts, role=role or message.role, is_summary_message=False)
