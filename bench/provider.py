"""A model provider that costs next to nothing: chat completions as server-sent events over raw sockets.

What to say is in the prompt (`directive.py`). The first token goes out at once; after that each stream keeps its own
pace at a random phase, so that the load is even however many streams began together. A token is stamped with the time
it was handed to the socket, and the clocks of one machine's processes are the same.
"""

import asyncio
import random
import time

from bench import directive
from bench.child import Answer, listen, obey

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENT = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}\n\n'
)
_USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d}}\n\n'
_DONE = b"data: [DONE]\n\n"
_BURST = 32  # tokens in one write when a stream is behind its pace


def event(delta: bytes, finish: bytes = b"null") -> bytes:
    return _EVENT % (delta, finish)


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Stream(asyncio.Protocol):
    """One connection: a request, its answer at the asked pace, the next request."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._left = self._sent = self._rate = 0
        self._began = 0.0
        self._padding = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._paused = True
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._left:
            self._pump()

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._received) >= end + 4 + length:
            body = bytes(self._received[end + 4 : end + 4 + length])
            del self._received[: end + 4 + length]
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        self._transport.write(_HEAD)
        command = directive.find_command(body)
        if command is not None:
            self._call(command)
            return
        self._left, self._rate, size = directive.find_stream(body) or (3, 0, 4)
        self._sent = 0
        stamped = size >= directive.STAMP_CHARACTERS
        self._padding = b"x" * (size - directive.STAMP_CHARACTERS) if stamped else b" word words"[:size]
        self._stamped = stamped
        # One token now, the rest at a phase of their own.
        self._began = self._loop.time() - (random.random() / self._rate if self._rate else 0.0)
        self._pump()

    def _call(self, command: bytes) -> None:
        call = (
            b'{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":'
            b'{"name":"bash","arguments":"{\\"command\\":\\"%s\\",\\"description\\":\\"bench\\"}"}}]}' % command
        )
        self._transport.write(framed(event(call)))
        self._finish(b'"tool_calls"')

    def _pump(self) -> None:
        """Send what is due; when the reader is slow, wait for it and be late."""
        self._timer = None
        while self._left and not self._paused:
            due = self._left
            if self._rate:
                due = int((self._loop.time() - self._began) * self._rate) + 1 - self._sent
            if due <= 0:
                self._timer = self._loop.call_at(self._began + self._sent / self._rate, self._pump)
                return
            count = min(due, self._left, _BURST)
            self._transport.write(self._token() if count == 1 else b"".join([self._token() for _ in range(count)]))
            self._sent += count
            self._left -= count
            if not self._left:
                self._finish(b'"stop"')

    def _token(self) -> bytes:
        text = self._padding
        if self._stamped:
            text = b"~%09d%b" % (time.monotonic_ns() // 1000 % directive.STAMP_MODULUS, text)
        return framed(event(b'{"content":"%b"}' % text))

    def _finish(self, reason: bytes) -> None:
        end = event(b"{}", reason) + _USAGE % self._sent + _DONE
        self._transport.write(framed(end) + b"0\r\n\r\n")


async def _start() -> int:
    return await listen(Stream)


async def _act(command: Answer) -> Answer:
    return {}


if __name__ == "__main__":
    obey(_start, _act)
