"""One connection to a provider: a request goes out, the events of its answer come in.

A protocol on the bare transport, with the HTTP parser that the server side uses too. A client library hands a body on
through a buffer, a future and a task; for tokens that come one by one this costs more than everything else that is done
with them (docs/decisions/08). Here the socket's callback puts the bytes into the next round and nothing else.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools
import msgspec

from windlass import limits
from windlass.models.rounds import Rounds
from windlass.models.sse import DONE, EventDecoder


class Broken(Exception):
    """The connection or the HTTP on it broke off; the message says how."""


class Head(msgspec.Struct):
    """How an answer begins. Names of headers are lower case."""

    status: int = 0
    headers: dict[str, str] = {}

    @property
    def is_events(self) -> bool:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return self.status == 200 and kind not in ("application/json", "text/html")


class Exchange(asyncio.Protocol):
    """A connection that carries one request after the other, never two at once."""

    def __init__(self, rounds: Rounds, silence_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._rounds = rounds
        self._silence_seconds = silence_seconds
        self._transport: asyncio.Transport | None = None
        self._waiting_bytes = 0
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self.is_open = False
        self.is_idle = True
        self.silent = True  # nothing came back for the newest request
        self._over: asyncio.Future[None] | None = None

    # -- a request ----------------------------------------------------------------------------------------------------

    async def send(self, request: bytes, take: Callable[[bytes], None]) -> None:
        """Send, and call `take` with each event's data until the answer is over. Raises what `take` raises, Broken, or
        TimeoutError after too long a silence. An answer that is no event stream is in `head` and `body` instead."""
        if self._transport is None or not self.is_open:
            raise Broken("connection closed")  # between its making and now: nobody would tell us again
        assert self.is_idle
        self._stop_timer()
        self.head, self.body = Head(), bytearray()
        self.is_idle, self.silent = False, True
        self._take = take
        self._events = EventDecoder(limits.MODEL_LINE_BYTES)
        self._head_bytes = 0
        self._done = False
        self._parser = httptools.HttpResponseParser(self)
        over = self._over = self._loop.create_future()
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(self._silence_seconds, self._look)
        self._transport.write(request)
        try:
            await over
        except BaseException:
            self.close()  # cancelled, or failed half-way: what is still on its way belongs to nobody
            raise
        finally:
            self._stop_timer()
            self._over = None
            if over.done() and not over.cancelled():
                over.exception()  # looked at, or a cancel that came in the same moment leaves a warning in the log
        if self.is_idle and self.is_open:
            # Routers on the way forget a connection that is silent for long, and do not say so.
            self._timer = self._loop.call_later(limits.MODEL_IDLE_SECONDS, self.close)
        else:
            self.close()

    def close(self) -> None:
        """Drop the connection at once: whoever listened is gone, and the provider need not go on."""
        self.is_open = False
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end(self, error: Exception | None = None) -> None:
        if self._over is not None and not self._over.done():
            if error is None:
                self._over.set_result(None)
            else:
                self._over.set_exception(error)

    def _look(self) -> None:
        """One timer that looks when it is due, not one per packet: that would be a fifth of what a token costs."""
        left = self._heard_at + self._silence_seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._end(TimeoutError())

    # -- the transport's side -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        self._waiting_bytes += len(data)
        if self._waiting_bytes > limits.MODEL_INBOX_BYTES and not self._paused:
            # More than we can carry: the provider waits, instead of our memory growing.
            self._paused = True
            assert self._transport is not None
            self._transport.pause_reading()
        for start in range(0, len(data), limits.MODEL_TURN_BYTES):
            self._rounds.add(self, data[start : start + limits.MODEL_TURN_BYTES])

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._over is None:
            self._stop_timer()
        # Behind the bytes that came before it, which may hold the end of the answer.
        self._rounds.add(self, b"")

    def open(self, received: bytes) -> None:
        """A turn in a round."""
        self._waiting_bytes -= len(received)
        if self._paused and not self._waiting_bytes and self.is_open:
            self._paused = False
            assert self._transport is not None
            self._transport.resume_reading()
        if self._over is None or self._over.done():
            if received:
                self.close()  # something nobody asked for: the next answer could not be told from it
            return
        if not received:
            self._lost()
            return
        self.silent = False
        self._heard_at = self._loop.time()
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # An error of a callback, such as a refusal of `take`, comes wrapped.
            self._end(error.__context__ if isinstance(error.__context__, Exception) else Broken("not HTTP"))

    def _lost(self) -> None:
        until_closed = "content-length" not in self.head.headers and "chunked" not in self.head.headers.get(
            "transfer-encoding", ""
        )
        if self.head.status and (until_closed or self._done):
            self._finish()
        else:
            self._end(Broken("connection closed"))

    # -- the parser's side --------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > limits.MODEL_ERROR_BYTES:
            raise Broken("an answer with endless headers")
        self.head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self.head.status = status
            self._sink = self._take_events if self.head.is_events else self._keep

    def on_body(self, data: bytes) -> None:
        self._sink(data)

    def on_message_complete(self) -> None:
        if self.head.status:  # and not a 1xx before the answer
            self.is_idle = self._parser.should_keep_alive()
            self._finish()

    def _finish(self) -> None:
        try:
            for data in self._events.finish():
                self._take(data)
        except Exception as error:
            self._end(error)
        self._end()

    def _take_events(self, data: bytes) -> None:
        for event in self._events.feed(data):
            self._take(event)
            if event == DONE:
                self._await_trailer()

    def _await_trailer(self) -> None:
        """Wait a moment for the end of the body: only one read to its end leaves the connection to the next step."""
        self._done = True
        self._stop_timer()
        self._timer = self._loop.call_later(limits.MODEL_TRAILER_SECONDS, self._end)

    def _keep(self, data: bytes) -> None:
        limit = limits.MODEL_LINE_BYTES if self.head.status == 200 else limits.MODEL_ERROR_BYTES
        self.body += data[: limit - len(self.body)]
        if len(self.body) >= limit:
            self._end()
