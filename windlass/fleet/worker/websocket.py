"""The WebSocket protocol (RFC 6455), a server's side, without I/O: bytes in, messages out, and the other way round.

Our own, because a worker is started for one assignment and waits for nothing but its imports: the libraries' take
longer to load than everything else of it together.
"""

import base64
import hashlib
import struct
from collections.abc import Iterator
from typing import NamedTuple

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_CONTINUATION = 0x0
_FINAL, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
_CONTROL_BYTES = 125  # the most a control frame may carry, says the RFC
_UNMASK_BYTES = 64 * 1024  # at a time; a multiple of the mask's four

GOING_AWAY, PROTOCOL_ERROR, POLICY, TOO_LARGE = 1001, 1002, 1008, 1009


class Violation(Exception):
    """The peer does not speak WebSocket; the connection is closed with this code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Message(NamedTuple):
    """A whole message, its fragments joined. `kind` is TEXT, BINARY, CLOSE, PING or PONG."""

    kind: int
    payload: bytes


class MessageReader:
    """Puts messages together from bytes that arrive cut anywhere."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._kind = 0  # of the message whose fragments are being collected
        self._fragments: list[bytes] = []
        self._collected = 0

    def feed(self, data: bytes) -> Iterator[Message]:
        """Every message that is whole now, in order; raises Violation at the first byte that is wrong."""
        self._buffer += data
        position = 0
        try:
            while (frame := self._frame(position)) is not None:
                head, payload, position = frame
                message = self._collect(head, payload)
                if message is not None:
                    yield message
        finally:
            del self._buffer[:position]

    def _frame(self, position: int) -> tuple[int, bytes, int] | None:
        """The first byte, the payload and the end of the frame that begins here, if all of it has come."""
        buffer = self._buffer
        if len(buffer) < position + 2:
            return None
        head, second = buffer[position], buffer[position + 1]
        length = second & _LENGTH
        self._check_head(head, second, length)
        start = position + 2
        if length >= 126:
            size, pattern = (2, "!H") if length == 126 else (8, "!Q")
            if len(buffer) < start + size:
                return None
            (length,) = struct.unpack_from(pattern, buffer, start)
            start += size
        # Before it is there: whoever announces a gigabyte must not make us collect it.
        if self._collected + length > self._max_bytes:
            raise Violation(TOO_LARGE, f"a message may have {self._max_bytes} bytes")
        end = start + 4 + length
        if len(buffer) < end:
            return None
        return head, _unmask(bytes(buffer[start : start + 4]), memoryview(buffer)[start + 4 : end]), end

    def _check_head(self, head: int, second: int, length: int) -> None:
        opcode = head & _OPCODE
        if head & _RESERVED:
            raise Violation(PROTOCOL_ERROR, "a reserved bit is set, and no extension was agreed on")
        if not second & _MASKED:
            raise Violation(PROTOCOL_ERROR, "a client must mask its frames")
        if opcode in (CLOSE, PING, PONG):
            if length > _CONTROL_BYTES or not head & _FINAL:
                raise Violation(PROTOCOL_ERROR, "a control frame is short and whole")
        elif opcode == _CONTINUATION:
            if not self._kind:
                raise Violation(PROTOCOL_ERROR, "a continuation of nothing")
        elif opcode not in (TEXT, BINARY):
            raise Violation(PROTOCOL_ERROR, "an unknown kind of frame")
        elif self._kind:
            raise Violation(PROTOCOL_ERROR, "a new message within another one")

    def _collect(self, head: int, payload: bytes) -> Message | None:
        opcode = head & _OPCODE
        if opcode in (CLOSE, PING, PONG):
            return Message(opcode, payload)
        if head & _FINAL and not self._kind:
            return Message(opcode, payload)
        self._kind = self._kind or opcode
        self._fragments.append(payload)
        # An empty fragment counts too: a flood of them would otherwise cost memory without ever reaching the bound.
        self._collected += max(len(payload), 1)
        if not head & _FINAL:
            return None
        message = Message(self._kind, b"".join(self._fragments))
        self._kind, self._fragments, self._collected = 0, [], 0
        return message


def frame(kind: int, payload: bytes) -> bytes:
    """One unfragmented frame as a server sends it, unmasked."""
    length = len(payload)
    if length < 126:
        head = struct.pack("!BB", _FINAL | kind, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", _FINAL | kind, 126, length)
    else:
        head = struct.pack("!BBQ", _FINAL | kind, 127, length)
    return head + payload


def close_frame(code: int, reason: str = "") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason.encode()[: _CONTROL_BYTES - 2])


def accept_key(key: str) -> str:
    """What proves to the client that we meant its own request."""
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11", usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def _unmask(mask: bytes, masked: memoryview) -> bytes:
    if len(masked) <= _UNMASK_BYTES:
        return _xor(mask, masked)
    return b"".join(_xor(mask, masked[at : at + _UNMASK_BYTES]) for at in range(0, len(masked), _UNMASK_BYTES))


def _xor(mask: bytes, masked: memoryview) -> bytes:
    """As one large number each: byte by byte it would take a hundred times as long."""
    length = len(masked)
    key = (mask * (length // 4 + 1))[:length]
    return (int.from_bytes(masked, "little") ^ int.from_bytes(key, "little")).to_bytes(length, "little")
