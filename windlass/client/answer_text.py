"""What a run says, in pieces, each character once: for programs that show an answer while it is written."""

from windlass.client.conversation import Conversation, Gained, Replaced
from windlass.client.events import StreamEvent
from windlass.wire.messages import Message, Text

_BETWEEN_MESSAGES = "\n\n"
_SAID_AGAIN = "\n"  # before a text that takes the place of one that was handed over already


class AnswerText:
    """Give it the events of one run; it returns the text that its assistant messages gained. Pure.

    Joined, the pieces are those messages with an empty line between two of them. An answer that the model began anew
    (its connection broke) cannot be unsaid: it follows whole, on a line of its own.
    """

    def __init__(self, session_id: str) -> None:
        self._conversation = Conversation(session_id)
        self._said: dict[tuple[str, int], _Said] = {}  # by message and part
        self._message_id = ""  # whose text was handed over last

    def take(self, event: StreamEvent) -> str:
        """The text that is new with this event, "" if it brings none."""
        match self._conversation.apply(event):
            case Gained(field="text") as gained:
                return self._gain(gained)
            case Replaced(message=message):
                return self.take_message(message)
            case _:
                return ""

    def take_message(self, message: Message) -> str:
        """What a whole message says beyond what was handed over of it."""
        if message.role != "assistant":
            return ""
        texts = [(index, part.data.text) for index, part in enumerate(message.parts) if isinstance(part, Text)]
        return self._led(message.id, "".join(self._part(message.id, index).whole(text) for index, text in texts))

    def _gain(self, gained: Gained) -> str:
        message = self._conversation.message(gained.message_id) if not self._known(gained) else None
        if message is not None and message.role != "assistant":
            return ""
        return self._led(gained.message_id, self._part(gained.message_id, gained.part).gain(gained.at, gained.text))

    def _known(self, gained: Gained) -> bool:
        return (gained.message_id, gained.part) in self._said

    def _part(self, message_id: str, part: int) -> "_Said":
        return self._said.setdefault((message_id, part), _Said())

    def _led(self, message_id: str, text: str) -> str:
        if not text:
            return ""
        lead = _BETWEEN_MESSAGES if self._message_id not in ("", message_id) else ""
        self._message_id = message_id
        return lead + text


class _Said:
    """What was handed over of one part."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def gain(self, at: int, text: str) -> str:
        """What is new of a piece that begins at `at`; a piece behind a hole waits for the whole message."""
        return self._say(text[self._length - at :]) if at <= self._length else ""

    def whole(self, text: str) -> str:
        said = "".join(self._pieces)
        if text.startswith(said):
            return self._say(text[self._length :])
        if said.startswith(text):
            return ""  # an older state of it, from the replay of what was
        self._pieces, self._length = [], 0
        return _SAID_AGAIN + self._say(text)

    def _say(self, text: str) -> str:
        if text:
            self._pieces.append(text)
            self._length += len(text)
        return text
