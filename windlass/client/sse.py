"""Server-sent events: bytes in, events out. No I/O, so that it can be fed one byte at a time in a test.

The difference to a browser's parser: an event here has the id that stood in it, or None. A browser carries the last id
over to events that have none, but on our wire exactly the facts have an id, and that is how they are told apart.
"""

import re

import msgspec

from windlass import limits
from windlass.client.errors import ProtocolError

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(msgspec.Struct, frozen=True):
    data: str
    id: str | None = None
    event: str = "message"


class SseParser:
    """Feed it what came from the socket, cut anywhere; it returns the events that became whole."""

    def __init__(self, event_bytes: int = limits.CLIENT_EVENT_BYTES) -> None:
        self._event_bytes = event_bytes
        self._unended = bytearray()  # a line whose end has not come yet
        self._after_carriage_return = False
        self._at_start = True
        self._data: list[bytes] = []
        self._size = 0
        self._id: str | None = None
        self._event = ""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Events completed by `chunk`, in order. Raises ProtocolError for one that is too large or not UTF-8."""
        events: list[ServerSentEvent] = []
        for line in self._lines(chunk):
            if line:
                self._field(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._after_carriage_return and chunk:
            # CR LF cut in the middle: its LF is not an empty line, which would end the event early.
            chunk = chunk.removeprefix(b"\n")
            self._after_carriage_return = False
        if chunk.endswith(b"\r"):
            self._after_carriage_return = True
        *ended, rest = _LINE_END.split(chunk)
        if ended:
            ended[0] = bytes(self._unended) + ended[0]
            self._unended = bytearray(rest)
        else:
            self._unended += rest
        self._check_size(len(self._unended))
        if ended and self._at_start:
            self._at_start = False
            ended[0] = ended[0].removeprefix(_BYTE_ORDER_MARK)
        return ended

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value)
            self._check_size(0)
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = _text(value)
        elif name == b"event":
            self._event = _text(value)
        # Anything else is a comment (an empty name: the heartbeat), `retry`, or a field of a later version.

    def _dispatch(self) -> ServerSentEvent | None:
        data, event_id, event = self._data, self._id, self._event
        self._data, self._id, self._event, self._size = [], None, "", 0
        if not data:
            return None
        return ServerSentEvent(_text(b"\n".join(data)), event_id, event or "message")

    def _check_size(self, unended: int) -> None:
        # Without a bound, a server that never ends a line would fill this process's memory.
        if self._size + unended > self._event_bytes:
            raise ProtocolError(f"An event on the stream is larger than {self._event_bytes} bytes.")


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("The stream is not UTF-8: what answers there is not a Windlass server.") from None
