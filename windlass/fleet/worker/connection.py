"""One connection to a worker: its handshake, its messages, its end. Knows WebSocket and nothing of frames.

All of it is callbacks of the event loop: what has come is handed on at once, so that a cancel never waits in a queue.
"""

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol, cast

import structlog

from windlass import limits
from windlass.fleet.worker import websocket
from windlass.fleet.worker.handshake import Refusal, Request, RequestReader, accepted, refused
from windlass.fleet.worker.websocket import MessageReader, Violation

logger = structlog.get_logger("windlass.worker")


class Peer(Protocol):
    """Who is told what happens on a connection."""

    def message(self, payload: bytes) -> None:
        """A whole text message."""

    def writable(self) -> None:
        """The transport takes more again."""

    def may_part(self) -> bool:
        """Whether the other end's goodbye may be answered now; if not, `part` does it."""

    def lost(self) -> None:
        """Nothing can be sent or received any more. Told once."""


class Connection(asyncio.Protocol):
    """`judge` decides about the request (raises Refusal), `opened` makes the peer, `gone` is told at the very end."""

    def __init__(
        self,
        judge: Callable[[Request], str],
        opened: Callable[["Connection"], Peer],
        gone: Callable[["Connection"], None],
    ) -> None:
        self.subprotocol = ""
        self.is_made = False  # the loop has handed it over; with TLS that is after its handshake
        self.is_writable = True
        self.is_lost = False
        self.last_heard = 0.0  # loop time; whatever the peer sends is a sign of life
        self._judge = judge
        self._opened = opened
        self._gone = gone
        self._peer: Peer | None = None
        self._request = RequestReader()
        self._messages = MessageReader(limits.LINK_FRAME_BYTES)
        self._is_handshaken = False
        self._held: list[bytes] | None = None
        self._held_bytes = 0
        self._is_closing = False
        self._goodbye: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None

    # -- for the peer -------------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._is_handshaken and not self._is_closing

    def write(self, payloads: list[bytes]) -> None:
        """Send text messages in one go. They wait in the transport: look at `is_writable` before."""
        if self.is_open:
            self._transport.write(b"".join(websocket.frame(websocket.TEXT, payload) for payload in payloads))

    def ping(self) -> None:
        if self.is_open and self.is_writable:
            self._transport.write(websocket.frame(websocket.PING, b""))

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye; what was written before still arrives. The connection is gone soon, whatever the peer does."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._is_handshaken:
            self._transport.close()  # it is still knocking
            return
        self._transport.write(websocket.close_frame(code, reason))
        # Not closed at once: what the peer has sent meanwhile would make the kernel reset the connection, and our last
        # frames, its run's terminal among them, would be lost on their way.
        self._transport.resume_reading()
        self._start_timer(limits.LINK_CLOSE_SECONDS, self._transport.abort)

    def abort(self) -> None:
        self._is_closing = True
        if self.is_made:  # else it is ended as soon as the loop hands it over
            self._transport.abort()

    def hold(self) -> None:
        """Keep messages until `release`: this connection must wait for its turn. Its pings are answered meanwhile."""
        self._held = [] if self._held is None else self._held

    def release(self) -> None:
        held, self._held, self._held_bytes = self._held or [], None, 0
        self._transport.resume_reading()
        for index, payload in enumerate(held):
            if self._held is not None:  # the first of them cost it its turn again
                self._held += held[index:]
                self._held_bytes = sum(len(left) for left in self._held)
                return
            self._hand_on(payload)

    # -- what the loop calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        self.is_made = True
        if self._is_closing:
            # The worker left between accepting it and now. Failing there would turn its exit code into a 1.
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=limits.WORKER_BUFFER_BYTES)
        _keep_alive(transport.get_extra_info("socket"))
        self._start_timer(limits.REQUEST_HEADER_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        self.last_heard = self._loop.time()
        if self._peer is None:
            if not self._is_closing:
                self._take_request(data)
            return
        try:
            for message in self._messages.feed(data):
                self._take(message)
        except Violation as violation:
            if not self._is_closing:  # the rest of it keeps coming in pieces, each of which is wrong again
                logger.warning("connection does not speak WebSocket as agreed", reason=violation.reason)
            self.close(violation.code, violation.reason)

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        if self._peer is not None:
            self._peer.writable()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_closing = self.is_lost = True
        self._stop_timer()
        if self._peer is not None:
            self._peer.lost()
        self._gone(self)

    # -- the handshake ------------------------------------------------------------------------------------------------

    def _take_request(self, data: bytes) -> None:
        try:
            request = self._request.feed(data)
            if request is None:
                return
            self.subprotocol = self._judge(request)
        except Refusal as refusal:
            self._refuse(refusal)
            return
        self._stop_timer()
        self._transport.write(accepted(request, self.subprotocol))
        self._is_handshaken = True
        self._peer = self._opened(self)
        if self._request.rest:
            self.data_received(self._request.rest)

    def _refuse(self, refusal: Refusal) -> None:
        logger.warning("connection refused", status=refusal.status.value, reason=refusal.reason)
        self._is_closing = True
        self._transport.write(refused(refusal))
        self._transport.close()
        self._start_timer(limits.LINK_CLOSE_SECONDS, self._transport.abort)

    def _too_slow(self) -> None:
        self._refuse(Refusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive"))

    # -- messages -----------------------------------------------------------------------------------------------------

    def _take(self, message: websocket.Message) -> None:
        if message.kind == websocket.CLOSE:
            self._farewell(message.payload)
        elif self._is_closing:
            pass  # we have said goodbye; what still comes is read so that the peer gets to our last words
        elif message.kind == websocket.PING:
            # A peer that does not read gets no answer either: they would pile up.
            if self.is_writable:
                self._transport.write(websocket.frame(websocket.PONG, message.payload))
        elif message.kind == websocket.TEXT:
            self._hand_on(message.payload)

    def _hand_on(self, payload: bytes) -> None:
        if self._held is not None:
            self._held.append(payload)
            self._held_bytes += len(payload) + limits.WORKER_FRAME_OVERHEAD_BYTES
            if self._held_bytes > limits.WORKER_HELD_BYTES:
                self._transport.pause_reading()
        elif self.is_open and self._peer is not None:
            self._peer.message(payload)

    def part(self) -> None:
        """Answer a goodbye that had to wait."""
        if self._goodbye is not None and not self.is_lost:
            self._farewell(self._goodbye)

    def _farewell(self, payload: bytes) -> None:
        if not self._is_closing and self._peer is not None and not self._peer.may_part():
            self._goodbye = payload[:2]
            return
        if not self._is_closing:
            self._is_closing = True
            self._transport.write(websocket.frame(websocket.CLOSE, payload[:2]))
        self._transport.close()
        self._start_timer(limits.LINK_CLOSE_SECONDS, self._transport.abort)

    def _start_timer(self, seconds: float, action: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, action)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _keep_alive(sock: socket.socket) -> None:
    """A host that lost its power says no goodbye; plain peers are asked for none, so the kernel must find out."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, option):  # not every system lets us choose
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
