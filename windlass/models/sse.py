"""Server-sent events as providers send them, decoded from bytes that arrive cut anywhere.

No I/O here: bytes go in with `feed`, the data of whole events comes out. The network may cut in the middle of a
character, so lines are found in bytes and decoded only when they are whole.
"""

import re

DONE = b"[DONE]"  # the data of the event that ends a stream
_NAME_LINE = re.compile(rb"(?:event: [a-z_.]+\n)?")
_ERROR_FIELD = b"error"  # some local servers send `error: {...}` instead of `data: {"error": ...}`


class LineTooLong(Exception):
    """An event larger than the bound: the sender is not speaking this protocol, or is broken."""


class EventDecoder:
    """Collects bytes and gives back the data of each event, in order. Comments and other fields are skipped."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, received: bytes) -> list[bytes]:
        """Take what arrived and return the data of every event that is now complete."""
        if not self._buffer and not self._data and received.startswith((b"data: ", b"event: ")):
            # Exactly one whole event, as nearly every packet of a provider is: nothing to search or to keep.
            name, found, data = received.rpartition(b"data: ")
            if found and data.endswith(b"\n\n") and data.count(b"\n") == 2 and _NAME_LINE.fullmatch(name):
                self._check(len(data))
                return [data[:-2]]
        self._buffer += received
        events: list[bytes] = []
        start = 0
        # Searching from where the last search ended: without it a long line in small pieces costs quadratic time.
        position = self._buffer.find(b"\n", self._searched)
        while position >= 0:
            self._take_line(bytes(self._buffer[start:position]).removesuffix(b"\r"), events)
            start = position + 1
            position = self._buffer.find(b"\n", start)
        del self._buffer[:start]
        self._searched = len(self._buffer)
        self._check(len(self._buffer))
        return events

    def finish(self) -> list[bytes]:
        """The sender closed: what is left of an event counts, because some leave the last empty line away."""
        return self.feed(b"\n\n")

    def _take_line(self, line: bytes, events: list[bytes]) -> None:
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data = []
            self._data_bytes = 0
            return
        field, _, value = line.partition(b":")
        if field == b"data" or field == _ERROR_FIELD:
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value)
            self._check(self._data_bytes)

    def _check(self, length: int) -> None:
        if length > self._limit_bytes:
            raise LineTooLong(f"an event of more than {self._limit_bytes} bytes")
