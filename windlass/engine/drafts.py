"""The messages a run is writing: their start, text, parts and end, as an executor tells of them, become facts."""

from collections.abc import Callable

import msgspec

from windlass.core.lane import Entry, Lane
from windlass.engine.sessions import Sessions
from windlass.engine.transcript import Transcript, finished
from windlass.journal.log import Log
from windlass.wire.events import Fact
from windlass.wire.messages import Message, Part, ToolResult
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, PartAdded, ResetMessage, ToolEnded


class ExecutorMisbehaved(Exception):
    """An executor emitted something the contract does not allow; its run fails."""


class Drafts:
    """Each method stages the facts or the text, and returns the head it rests on."""

    def __init__(
        self, log: Log, lane: Lane, entry: Entry, transcript: Transcript, sessions: Sessions, now: Callable[[], int]
    ) -> None:
        self._log = log
        self._lane = lane
        self._entry = entry
        self._transcript = transcript
        self._sessions = sessions
        self._now = now

    def start(self, event: MessageStart) -> int:
        if event.is_summary and event.role != "assistant":
            raise ExecutorMisbehaved(f"a summary in a message of the role {event.role}")
        now = self._now()
        message = Message(
            id=event.message_id,
            role=event.role,
            session_id=self._entry.run.session_id,
            parts=[_whole(part) for part in event.parts],
            model=event.model,
            provider=event.provider,
            created_at=now,
            updated_at=now,
            is_summary_message=event.is_summary,
        )
        self._lane.note(self._entry, message_id=message.id)
        return self._log.append([self._transcript.create(message), *self._summed_up(message)])

    def delta(self, event: Delta) -> int:
        try:
            if event.field == "signature":
                self._log.sign(event.message_id, event.part, event.text)
                return self._log.head
            self._log.delta(event.message_id, event.part, event.text, event.part_type, event.id, event.name)
        except (KeyError, ValueError) as error:
            raise ExecutorMisbehaved(f"a delta that fits no message: {error}") from None
        if event.part_type == "tool_call":
            self._transcript.call_streamed(event.message_id, event.id, event.name)
        return self._log.head

    def end(self, event: MessageEnd) -> int:
        message = finished(self._answer(event.message_id), event.reason, self._now(), event.message, event.details)
        return self._log.append([self._transcript.update(message), *self._summed_up(message)])

    def add_part(self, event: PartAdded) -> int:
        message = self._answer(event.message_id)
        message.parts.append(_whole(event.part))
        return self._log.append([self._transcript.update(message)])

    def reset(self, event: ResetMessage) -> int:
        message = self._written(event.message_id)
        message.parts.clear()
        return self._log.append([self._transcript.update(message)])

    def tool_ended(self, event: ToolEnded) -> int:
        """The result that was streamed is whole. Readers have to come from what they were shown to what it says: by
        the rest of it, or, where it is another text, by a message that is emptied first (I16)."""
        message = self._written(event.message_id)
        if message.role != "tool":
            raise ExecutorMisbehaved("the result of a tool in a message of another role")
        facts: list[Fact] = []
        if message.parts and not self._goes_on(message, event.result):
            emptied = msgspec.structs.replace(message, parts=[], updated_at=self._now())
            facts.append(self._transcript.update(emptied))
        whole = msgspec.structs.replace(message, parts=[_whole(event.result)], updated_at=self._now())
        return self._log.append([*facts, self._transcript.update(whole)])

    def _goes_on(self, message: Message, result: ToolResult) -> bool:
        """Whether the result is what was streamed and more; that is streamed too then."""
        shown = "".join(part.data.content for part in message.parts if isinstance(part, ToolResult))
        content = result.data.content
        if not content.startswith(shown):
            return False
        try:
            if len(content) > len(shown):
                self._log.delta(message.id, 0, content[len(shown) :])
        except ValueError:
            return False  # more than one message may stream: then it comes at once
        return True

    def _summed_up(self, message: Message) -> list[Fact]:
        """A summary that ended well stands for all before it, from the same commit on."""
        if not is_whole_summary(message):
            return []
        return self._sessions.change(message.session_id, self._entry.by, summary_message_id=message.id)

    def _answer(self, message_id: str) -> Message:
        message = self._written(message_id)
        if message.role == "tool":
            raise ExecutorMisbehaved("the result of a tool that ends otherwise than by its result")
        return message

    def _written(self, message_id: str) -> Message:
        message = self._log.staged_message(message_id)
        if message is None:
            raise ExecutorMisbehaved("an event for a message that is not being written")
        return message


def _whole(part: Part) -> Part:
    """What an executor gives as a part is all there is of it, whatever it says."""
    if isinstance(part, ToolResult) and part.data.unfinished:
        return ToolResult(msgspec.structs.replace(part.data, unfinished=False))
    return part


def is_whole_summary(message: Message) -> bool:
    finish = message.finish
    return message.is_summary_message and finish is not None and finish.reason == "end_turn"
