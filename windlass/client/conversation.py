"""A live picture of one session: its messages, and the text of those still being written.

Whole messages replace what was known; deltas add to it. A delta that goes beyond what is known (a hole) is ignored
until the next whole message; one that is already known (a repeat) changes nothing (I16). So the picture is never wrong,
only sometimes a little behind.
"""

from collections.abc import Iterable

import msgspec

from windlass.client.events import StreamEvent
from windlass.wire.events import MessageDelta
from windlass.wire.messages import (
    Message,
    Part,
    Reasoning,
    ReasoningData,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)


class Replaced(msgspec.Struct, frozen=True):
    """A whole message came: new, changed or finished."""

    message: Message


class Gained(msgspec.Struct, frozen=True):
    """One field of one part grew by `text`, which begins at the offset `at`."""

    message_id: str
    part: int
    field: str
    at: int
    text: str


class Removed(msgspec.Struct, frozen=True):
    message_id: str


Happening = Replaced | Gained | Removed
_Place = tuple[str, int, str]  # message, part, field


class Conversation:
    """`apply` every event of the stream; it takes what is about this session and says what that changed."""

    def __init__(self, session_id: str, messages: Iterable[Message] = ()) -> None:
        self.session_id = session_id
        self._messages: dict[str, Message] = {}
        # Text gained since the message was last whole, in pieces: adding each to one long string would make a
        # message of a megabyte cost its square.
        self._gained: dict[_Place, list[str]] = {}
        self._lengths: dict[_Place, int] = {}
        self.load(messages)

    def load(self, messages: Iterable[Message]) -> None:
        """Start from what REST says, in its order (also after a `reset`)."""
        self._messages = {message.id: message for message in messages}
        self._gained.clear()
        self._lengths.clear()

    @property
    def messages(self) -> list[Message]:
        """All messages, oldest first, each with the text it has so far."""
        return [self._settled(message) for message in self._messages.values()]

    def message(self, message_id: str) -> Message | None:
        message = self._messages.get(message_id)
        return None if message is None else self._settled(message)

    def apply(self, event: StreamEvent) -> Happening | None:
        """Take an event in. None: it was about something else, a hole, or a repeat."""
        if event.session_id != self.session_id:
            return None
        try:
            if event.kind == "message_delta":
                return self._grow(msgspec.convert(event.payload, MessageDelta))
            if event.kind == "message" and event.change == "deleted":
                return self._remove(str(event.payload["id"]))
            if event.kind == "message":
                return self._replace(msgspec.convert(event.payload, Message))
        except (msgspec.ValidationError, KeyError):
            # A kind of part this version does not know. The rest of the conversation is still worth showing.
            return None
        return None

    def _replace(self, message: Message) -> Replaced:
        self._forget(message.id)
        self._messages[message.id] = message
        return Replaced(message)

    def _remove(self, message_id: str) -> Removed | None:
        self._forget(message_id)
        return Removed(message_id) if self._messages.pop(message_id, None) is not None else None

    def _grow(self, delta: MessageDelta) -> Gained | None:
        message = self._messages.get(delta.message_id)
        if message is None:
            return None
        if delta.part == len(message.parts) and delta.at == 0 and (part := _new_part(delta)) is not None:
            message.parts.append(part)
        place = (delta.message_id, delta.part, delta.field)
        known = self._length(message, place)
        if known is None or delta.at > known:
            return None
        text = delta.text[known - delta.at :]
        if not text:
            return None
        self._gained.setdefault(place, []).append(text)
        self._lengths[place] = known + len(text)
        return Gained(delta.message_id, delta.part, delta.field, known, text)

    def _length(self, message: Message, place: _Place) -> int | None:
        """How many code points of that field are known; None when there is no such field."""
        if place not in self._lengths:
            _, part, field = place
            if not 0 <= part < len(message.parts):
                return None
            value = getattr(message.parts[part].data, field, None)
            if not isinstance(value, str):
                return None
            self._lengths[place] = len(value)
        return self._lengths[place]

    def _settled(self, message: Message) -> Message:
        """The message with what it gained put into its parts."""
        for place in [place for place in self._gained if place[0] == message.id]:
            _, part, field = place
            data = message.parts[part].data
            setattr(data, field, getattr(data, field) + "".join(self._gained.pop(place)))
        return message

    def _forget(self, message_id: str) -> None:
        for places in (self._gained, self._lengths):
            for place in [place for place in places if place[0] == message_id]:
                del places[place]


def _new_part(delta: MessageDelta) -> Part | None:
    match delta.type:
        case "text":
            return Text(TextData())
        case "reasoning":
            return Reasoning(ReasoningData())
        case "tool_call":
            return ToolCall(ToolCallData(id=delta.id, name=delta.name, input=""))
        case "tool_result":
            return ToolResult(ToolResultData(delta.id, delta.name, "", metadata="", is_error=False, unfinished=True))
        case _:
            return None
