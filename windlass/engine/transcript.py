"""What a run has put into its conversation so far, and the facts that end it properly.

However a run ends, its messages are whole afterwards (I7): the open message is finished, every tool call has a result,
and the last word is an assistant message that says how it ended.
"""

from collections.abc import Callable

import msgspec

from windlass import limits
from windlass.wire.events import Fact
from windlass.wire.messages import (
    Binary,
    BinaryData,
    Finish,
    FinishData,
    FinishReason,
    Message,
    MessagePrivate,
    Part,
    Role,
    Text,
    TextData,
    ToolCall,
    ToolResult,
    ToolResultData,
)
from windlass.wire.permissions import By
from windlass.wire.runs import Attachment, Outcome

_REASON: dict[Outcome, FinishReason] = {
    "completed": "end_turn",
    "canceled": "canceled",
    "failed": "error",
    "interrupted": "error",
}
_NO_RESULT: dict[Outcome, str] = {
    "completed": "The tool call was not carried out.",
    "canceled": "The run was cancelled before this tool call was carried out to its end.",
    "failed": "The run failed before this tool call was carried out to its end.",
    "interrupted": "The server stopped before this tool call was carried out to its end; it may have had an effect.",
}


class Transcript:
    """The messages of one run, as far as its ending needs to know them."""

    def __init__(self, run_id: str, session_id: str, number: int, by: By, new_id: Callable[[str], str]) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.number = number
        self.by = by
        self.next_index = 0
        self.added = 0  # messages this process put in, for the session's count
        self.last_text = ""
        self.last_assistant_id = ""
        self.open: dict[str, MessagePrivate] = {}  # messages being written
        self._new_id = new_id
        self._last_reason: FinishReason | None = None
        self._calls: dict[str, dict[str, str]] = {}  # message id -> its tool calls without a result, id -> name

    # -- following ----------------------------------------------------------------------------------------------------

    def create(self, message: Message, run_id: str = "") -> Fact:
        """A message enters the conversation. One of another run (a steered prompt) stands here but belongs to that."""
        place = MessagePrivate(self.number, self.next_index)
        self.next_index += 1
        self.added += 1
        self.follow(message, place)
        return self._fact("created", message, place, run_id)

    def update(self, message: Message) -> Fact:
        place = self.open[message.id]
        self.follow(message, place)
        return self._fact("updated", message, place)

    def follow(self, message: Message, place: MessagePrivate) -> None:
        """Take note of a message as it is now; also used for those that are on disk already."""
        self.next_index = max(self.next_index, place.index + 1)
        if message.role == "tool":
            self._follow_result(message, place)
        if message.role != "assistant":
            return
        self._calls[message.id] = {call.id: call.name for call in message.tool_calls}
        self.last_assistant_id = message.id
        finish = message.finish
        self._last_reason = None if finish is None else finish.reason
        if finish is None:
            self.open[message.id] = place
        else:
            self.open.pop(message.id, None)
            self.last_text = message.text

    def _follow_result(self, message: Message, place: MessagePrivate) -> None:
        if message.is_open:
            self.open[message.id] = place
            return
        self.open.pop(message.id, None)
        for part in message.parts:
            if isinstance(part, ToolResult):
                self._resolve(part.data.tool_call_id)

    def call_streamed(self, message_id: str, call_id: str, name: str) -> None:
        self._calls.setdefault(message_id, {})[call_id] = name

    def _resolve(self, call_id: str) -> None:
        for calls in self._calls.values():
            if call_id in calls:
                del calls[call_id]
                return

    # -- ending -------------------------------------------------------------------------------------------------------

    def end(self, outcome: Outcome, error: str, written: Callable[[str], Message | None], now: int) -> list[Fact]:
        """The facts that make the conversation whole. `written(id)` is the text so far of an open message."""
        facts: list[Fact] = []
        found = [message for id in self.open if (message := written(id)) is not None]
        # Last those that do not say which call they are of: they take what is left.
        for message in sorted(found, key=lambda message: message.role == "tool" and not message.parts):
            if message.role == "tool":
                facts += self._broken_off(message, outcome, now)
            else:
                facts.append(self.update(finished(message, _REASON[outcome], now, error)))
        for calls in list(self._calls.values()):
            for call_id, name in list(calls.items()):
                facts.append(self.create(self._missing_result(call_id, name, outcome, now)))
        if not self._says(outcome):
            facts.append(self.create(self._last_word(outcome, error, now)))
        return facts

    def _broken_off(self, message: Message, outcome: Outcome, now: int) -> list[Fact]:
        """A result that was being streamed: what came of it, and why no more did. It is emptied first, since it does
        not just go on from what readers were shown (I16)."""
        streamed = next((part.data for part in message.parts if isinstance(part, ToolResult)), None)
        facts: list[Fact] = []
        if streamed is None:
            streamed = self._unclaimed()
        else:
            facts.append(self.update(msgspec.structs.replace(message, parts=[], updated_at=now)))
        shown = _shortened(streamed.content).rstrip()
        content = f"{shown}\n\n{_NO_RESULT[outcome]}".lstrip()
        data = msgspec.structs.replace(streamed, content=content, is_error=True, unfinished=False)
        whole = msgspec.structs.replace(message, parts=[ToolResult(data)], updated_at=now)
        return [*facts, self.update(whole)]

    def _unclaimed(self) -> ToolResultData:
        """A result that was begun and said nothing did not say either whose it is: any call that has none will do."""
        waiting = ((id, name) for calls in self._calls.values() for id, name in calls.items())
        id, name = next(waiting, ("", ""))
        return ToolResultData(tool_call_id=id, name=name, content="", metadata="", is_error=True)

    def _says(self, outcome: Outcome) -> bool:
        """Whether the last assistant message already tells how the run ended."""
        if outcome == "completed":
            return self._last_reason is not None
        return self._last_reason == _REASON[outcome]

    def _missing_result(self, call_id: str, name: str, outcome: Outcome, now: int) -> Message:
        data = ToolResultData(tool_call_id=call_id, name=name, content=_NO_RESULT[outcome], metadata="", is_error=True)
        return self._message("tool", [ToolResult(data)], now)

    def _last_word(self, outcome: Outcome, error: str, now: int) -> Message:
        message = self._message("assistant", [], now)
        self.last_text = ""
        return finished(message, _REASON[outcome], now, error)

    def user(self, text: str, now: int, attachments: list[Part], message_id: str = "") -> Message:
        message = self._message("user", [Text(TextData(text)), *attachments], now)
        return msgspec.structs.replace(message, id=message_id) if message_id else message

    def _message(self, role: Role, parts: list[Part], now: int) -> Message:
        return Message(
            id=self._new_id("msg"),
            role=role,
            session_id=self.session_id,
            parts=parts,
            model="",
            provider="",
            created_at=now,
            updated_at=now,
        )

    def _fact(self, change: str, message: Message, place: MessagePrivate, run_id: str = "") -> Fact:
        return Fact(
            "message",
            "created" if change == "created" else "updated",
            message,
            self.by,
            self.session_id,
            run_id or self.run_id,
            key=message.id,
            private=place,
        )


def finished(message: Message, reason: FinishReason, now: int, note: str = "", details: str = "") -> Message:
    """The message with its end. A tool call the model wrote to its end is marked so."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall) and reason == "tool_use":
            part = ToolCall(msgspec.structs.replace(part.data, finished=True))
        if not isinstance(part, Finish):
            parts.append(part)
    if reason in ("canceled", "end_turn", "tool_use"):
        note = ""
    parts.append(Finish(FinishData(reason, now, note, details)))
    return msgspec.structs.replace(message, parts=parts, updated_at=now)


def _shortened(text: str) -> str:
    limit = limits.TOOL_OUTPUT_CHARACTERS
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n\n[... {len(text) - limit} characters left out here ...]\n\n{text[-limit // 2 :]}"


def attachment_parts(attachments: list[Attachment]) -> list[Part]:
    return [Binary(BinaryData(path=a.file_path, mime_type=a.mime_type, data=a.content)) for a in attachments]
