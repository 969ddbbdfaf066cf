"""What the run events of a worker may say. It is another process, perhaps on another machine: it is not believed.

What makes no sense at all (a delta without a message) is found by whoever takes the events. Here is what would make
sense, and would be about somebody else's run or money (A31).
"""

from windlass import limits
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.wire.execution import RunSpec
from windlass.wire.run_events import (
    Delta,
    MessageEnd,
    MessageStart,
    PartAdded,
    ResetMessage,
    RunEvent,
    SteerTaken,
    UsageGained,
)

_ROLES = ("assistant", "tool")  # a worker does not speak for people, nor for us


class EventRules:
    """The rules of one run, which remember what it has started and what it was handed."""

    def __init__(self, spec: RunSpec) -> None:
        self._earlier = {message.id for message in spec.messages}
        self._started: set[str] = set()
        self.handed: set[str] = set()  # steering messages that were sent to it and not taken yet

    def hand(self, run_id: str, message_id: str) -> None:
        """It is sent this steering message, which is a person's: it may take it, and not write it anew."""
        self.handed.add(run_id)
        self._earlier.add(message_id)

    def check(self, event: RunEvent) -> None:
        """Raises ProtocolError for an event that this run may not emit."""
        match event:
            case Delta() | PartAdded() | MessageEnd() | ResetMessage():
                if event.message_id not in self._started:
                    raise ProtocolError("an event for a message that this run did not start")
            case MessageStart():
                self._check_start(event)
            case SteerTaken():
                if event.run_id not in self.handed:
                    raise ProtocolError("it took a steering message that it was not sent")
                self.handed.discard(event.run_id)
            case UsageGained():
                _check_usage(event)
            case _:
                pass

    def _check_start(self, event: MessageStart) -> None:
        if not 0 < len(event.message_id) <= limits.ID_CHARACTERS:
            raise ProtocolError("a message whose id is empty or too long")
        if event.message_id in self._started or event.message_id in self._earlier:
            raise ProtocolError("a message whose id is another message's")
        if event.role not in _ROLES:
            raise ProtocolError(f"a message of the role {event.role}, which is not a worker's")
        self._started.add(event.message_id)


def _check_usage(event: UsageGained) -> None:
    usage = event.usage
    gains = (usage.prompt_tokens, usage.completion_tokens, usage.cache_read_tokens, event.cost)
    if not all(0 <= gain <= limits.USAGE_TOKENS for gain in gains):
        raise ProtocolError("a usage that is no amount")
