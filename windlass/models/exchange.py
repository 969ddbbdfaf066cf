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
from windlass.models.sse import EventDecoder

# Takes the data of one event, and says whether it was the last of the answer.
TakeEvent = Callable[[bytes], bool]


class Broken(Exception):
    """The connection or the HTTP on it broke off; the message says how. `silent`: before anything had come back."""

    def __init__(self, message: str, silent: bool = False) -> None:
        super().__init__(message)
        self.silent = silent


class Head(msgspec.Struct):
    """How an answer begins. Names of headers are lower case."""

    status: int = 0
    headers: dict[str, str] = {}

    @property
    def is_events(self) -> bool:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return self.status == 200 and kind not in ("application/json", "text/html")

    @property
    def ends_with_the_connection(self) -> bool:
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        return self.status > 0 and not chunked and "content-length" not in self.headers


class Answer:
    """One answer while it comes in: what the parser calls. An answer that is no event stream is kept in `body`."""

    def __init__(self, take: TakeEvent) -> None:
        self.head = Head()
        self.body = bytearray()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_whole = False  # read to its end, so that another may follow on the same connection
        self.is_silent = True
        self.is_done = False  # its last event came; only the end of the body may be missing
        self._take = take
        self._events = EventDecoder(limits.MODEL_LINE_BYTES)
        self._head_bytes = 0
        self._sink = self._keep
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def feed(self, received: bytes) -> None:
        assert self._parser is not None
        self.is_silent = False
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # An error of a callback, such as a refusal of `take`, comes wrapped.
            self.fail(error.__context__ if isinstance(error.__context__, Exception) else Broken("not HTTP"))

    def lost(self) -> None:
        """The connection is gone: the end of the answer, or of our patience with it."""
        if self.head.ends_with_the_connection or self.is_done:
            self._finish()
        else:
            self.fail(Broken("connection closed", self.is_silent))

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def fail(self, error: Exception) -> None:
        self.is_whole = False
        if not self.over.done():
            self.over.set_exception(error)

    def let_go(self) -> None:
        """Nobody waits for it any more: hold nobody, and above all no conversation."""
        self._take = _nobody
        self._parser = None  # it holds us, and we it
        if self.over.done() and not self.over.cancelled():
            self.over.exception()  # looked at, or a cancel in the same moment leaves a warning in the log

    # -- the parser's side --------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.head.status:
            raise Broken("a second answer to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > limits.MODEL_ERROR_BYTES:
            raise Broken("an answer with endless headers")
        self.head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            self.head.headers.clear()  # the answer comes later, with headers of its own
            return
        self.head.status = status
        if self.head.is_events:
            self._sink = self._take_events

    def on_body(self, data: bytes) -> None:
        self._sink(data)

    def on_message_complete(self) -> None:
        if self.head.status:
            assert self._parser is not None
            self.is_whole = self._parser.should_keep_alive()
            self._finish()

    def _finish(self) -> None:
        try:
            for data in self._events.finish():
                self._take(data)
        except Exception as error:
            self.fail(error)
        self.end()

    def _take_events(self, data: bytes) -> None:
        for event in self._events.feed(data):
            self.is_done = self._take(event) or self.is_done

    def _keep(self, data: bytes) -> None:
        limit = limits.MODEL_LINE_BYTES if self.head.status == 200 else limits.MODEL_ERROR_BYTES
        self.body += data[: limit - len(self.body)]
        if len(self.body) >= limit:
            self.end()


def _nobody(data: bytes) -> bool:
    """Whoever listened is gone."""
    return False


class Exchange(asyncio.Protocol):
    """A connection that carries one request after the other, never two at once."""

    def __init__(self, rounds: Rounds, silence_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._rounds = rounds
        self._silence_seconds = silence_seconds
        self._transport: asyncio.Transport | None = None
        self._waiting_bytes = 0
        self._paused = False
        self._answer: Answer | None = None
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.is_open = False

    # -- a request ----------------------------------------------------------------------------------------------------

    async def send(self, request: bytes, take: TakeEvent) -> Answer:
        """Send, and call `take` with each event's data until the answer is over. Raises what `take` raises, Broken, or
        TimeoutError after too long a silence. Afterwards `is_open` says whether another request may follow."""
        if self._transport is None or not self.is_open:
            raise Broken("connection closed", silent=True)  # between its making and now: nobody would tell us again
        assert self._answer is None
        answer = self._answer = Answer(take)
        self._heard_at = self._loop.time()
        self._set_timer(self._silence_seconds, self._look)
        self._transport.write(request)
        try:
            await answer.over
        except BaseException:
            self.close()  # cancelled, or failed half-way: what is still on its way belongs to nobody
            raise
        finally:
            self._answer = None
            self._stop_timer()
            answer.let_go()
        if answer.is_whole and self.is_open and not self._waiting_bytes:
            # Routers on the way forget a connection that is silent for long, and do not say so.
            self._set_timer(limits.MODEL_IDLE_SECONDS, self.close)
        else:
            self.close()
        return answer

    def close(self) -> None:
        """Drop the connection at once: whoever listened is gone, and the provider need not go on."""
        self.is_open = False
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    def _set_timer(self, seconds: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        """One timer that looks when it is due, not one per packet: that would be a fifth of what a token costs."""
        left = self._heard_at + self._silence_seconds - self._loop.time()
        if left > 0:
            self._set_timer(left, self._look)
        elif self._answer is not None:
            self._answer.fail(TimeoutError())

    # -- the transport's side -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.over.done():
            self.close()  # something nobody asked for: the next answer could not be told from it
            return
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
        if self._answer is None:
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
        answer = self._answer
        if answer is None or answer.over.done():
            if received:
                self.close()  # bytes behind the end of an answer
        elif received:
            self._heard_at = self._loop.time()
            answer.feed(received)
            if answer.is_done and not answer.over.done():
                # Wait a moment for the body's end: only one read to its end leaves the connection to the next step.
                self._set_timer(limits.MODEL_TRAILER_SECONDS, answer.end)
        else:
            answer.lost()
