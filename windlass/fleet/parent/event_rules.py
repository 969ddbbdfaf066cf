"""What the run events of a worker may say. It is another process, perhaps on another machine: it is not believed.

What makes no sense at all (a delta without a message) is found by whoever takes the events. Here is what would make
sense, and would be about somebody else's run or money (A31).
"""

from windlass import limits
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.wire.execution import RunSpec
from windlass.wire.run_events import (
    Delta,
    FileWritten,
    MessageEnd,
    MessageStart,
    PartAdded,
    ResetMessage,
    RunEvent,
    SteerTaken,
    ToolEnded,
    UsageGained,
)

_ROLES = ("assistant", "tool")  # a worker does not speak for people, nor for us


class EventRules:
    """The rules of one run, which remember what it has started and what it was handed."""

    def __init__(self, spec: RunSpec) -> None:
        self._earlier = {message.id for message in spec.messages}
        self._started: dict[str, int] = {}  # its messages, and how many bytes were said of each
        self.handed: set[str] = set()  # steering messages that were sent to it and not taken yet

    def hand(self, run_id: str, message_id: str) -> None:
        """It is sent this steering message, which is a person's: it may take it, and not write it anew."""
        self.handed.add(run_id)
        self._earlier.add(message_id)

    def check(self, event: RunEvent, size: int = 0) -> None:
        """Raises ProtocolError for an event that this run may not emit. `size` is that of its frame, in bytes."""
        match event:
            case Delta() | PartAdded() | MessageEnd() | ResetMessage() | ToolEnded():
                if event.message_id not in self._started:
                    raise ProtocolError("an event for a message that this run did not start")
                self._grow(event.message_id, len(event.text) if isinstance(event, Delta) else size)
            case MessageStart():
                self._check_start(event)
                self._grow(event.message_id, size)
            case SteerTaken():
                if event.run_id not in self.handed:
                    raise ProtocolError("it took a steering message that it was not sent")
                self.handed.discard(event.run_id)
            case UsageGained():
                _check_usage(event)
            case FileWritten():
                _check_file(event)
            case _:
                pass

    def _check_start(self, event: MessageStart) -> None:
        if not 0 < len(event.message_id) <= limits.ID_CHARACTERS:
            raise ProtocolError("a message whose id is empty or too long")
        if event.message_id in self._started or event.message_id in self._earlier:
            raise ProtocolError("a message whose id is another message's")
        if event.role not in _ROLES:
            raise ProtocolError(f"a message of the role {event.role}, which is not a worker's")
        if len(self._started) >= limits.LINK_MESSAGES_PER_RUN:
            raise ProtocolError(f"more than {limits.LINK_MESSAGES_PER_RUN} messages in one run")
        self._started[event.message_id] = 0

    def _grow(self, message_id: str, size: int) -> None:
        """Each part is written with all of its message: one that grew without end would be written ever more slowly."""
        self._started[message_id] += size
        if self._started[message_id] > limits.LINK_MESSAGE_BYTES:
            raise ProtocolError(f"a message of over {limits.LINK_MESSAGE_BYTES} bytes")


def _check_file(event: FileWritten) -> None:
    if not event.path.startswith("/") or len(event.path) > limits.PATH_CHARACTERS:
        raise ProtocolError("a file whose path is not absolute, or too long")


def _check_usage(event: UsageGained) -> None:
    usage = event.usage
    tokens = (usage.prompt_tokens, usage.completion_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    gains = (*tokens, event.cost)
    if not all(0 <= gain <= limits.USAGE_TOKENS for gain in gains):
        raise ProtocolError("a usage that is no amount")
