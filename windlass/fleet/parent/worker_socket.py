"""The parent's connection to a worker: the WebSocket, which dialect it speaks, and whether anyone is still there.

connect()   reach the worker, prove who we are, agree on the dialect, hear its `hello`
receive()   the next frame, undecoded; raises LinkLost or ProtocolError
send()      written at once: a frame never waits in a queue of ours, so a cancel is behind nothing but bytes
watch()     returns never; raises LinkLost when the worker has been silent for too long
close()     a goodbye that the other end answers; `abort()` lets go without one
"""

import asyncio
import encodings.idna  # noqa: F401  every host name is encoded with it; loaded at the first one, it would stop the loop
import ssl
from typing import NoReturn
from urllib.parse import urlsplit

import aiohttp
import msgspec

from windlass import limits
from windlass.fleet.parent.link_errors import LinkLost, ProtocolError, Unreachable, shortened
from windlass.wire.frames import SUBPROTOCOL, VERSION, ChildFrame, Frame, Hello

_CLOSED = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED)
_SAID_NOTHING = (None, aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.ABNORMAL_CLOSURE)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ChildFrame).decode


def encoded(frame: Frame) -> bytes:
    return _encode(frame)


class WorkerSocket:
    """Made by `connect`. One reader at a time; anyone may send."""

    def __init__(self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._session = session
        self._socket = socket
        # Kept here, because a socket that is being closed forgets it, and one whose peer never reads stays open then.
        self._transport = socket._response.connection.transport if socket._response.connection else None
        self._loop = asyncio.get_running_loop()
        self._heard_at = self._loop.time()
        self.is_plain = socket.protocol != SUBPROTOCOL

    async def receive(self) -> str:
        """The next text message. Raises LinkLost at the end of the connection."""
        while True:
            message = await self._socket.receive()
            self._heard_at = self._loop.time()
            if message.type is aiohttp.WSMsgType.TEXT:
                text: str = message.data
                return text
            if message.type is aiohttp.WSMsgType.PING:
                await self._write(message.data, aiohttp.WSMsgType.PONG)
            elif message.type is aiohttp.WSMsgType.ERROR and isinstance(message.data, aiohttp.WebSocketError):
                raise ProtocolError(str(message.data))
            elif message.type in _CLOSED or message.type is aiohttp.WSMsgType.ERROR:
                raise LinkLost(f"The worker was lost before the run was over{self._farewell()}.")
            # Else binary or a pong: a sign of life and nothing more.

    def _farewell(self) -> str:
        code = self._socket.close_code
        return "" if code in _SAID_NOTHING else f" (it closed the connection with code {code})"

    async def send(self, frame: Frame) -> None:
        """Write a frame now; waits only while the worker reads too slowly. A lost link is the reader's to tell."""
        await self.send_text(encoded(frame))

    async def send_text(self, data: bytes) -> None:
        """The same, for a frame that is encoded already."""
        await self._write(data, aiohttp.WSMsgType.TEXT)

    async def _write(self, data: bytes, kind: aiohttp.WSMsgType) -> None:
        try:
            await self._socket.send_frame(data, kind)
        except (ConnectionError, aiohttp.ClientError):
            pass

    async def watch(self) -> NoReturn:
        """Ask for a sign of life and raise LinkLost when none has come for too long. A plain worker is not asked."""
        patience = limits.LINK_PLAIN_SILENCE_SECONDS if self.is_plain else limits.LINK_SILENCE_SECONDS
        while True:
            await asyncio.sleep(min(limits.LINK_PING_SECONDS, patience))
            if self._loop.time() - self._heard_at >= patience:
                raise LinkLost(f"The worker was lost: nothing was heard of it for {patience:g} seconds.")
            if not self.is_plain:
                await self._write(b"", aiohttp.WSMsgType.PING)

    async def close(self) -> bool:
        """Say goodbye and let go; whether the other end did the same within its time."""
        try:
            # The library's own bound begins anew with everything that comes: one that talks on would never be done.
            async with asyncio.timeout(limits.LINK_CLOSE_SECONDS):
                await self._socket.close()
            return self._socket.close_code == aiohttp.WSCloseCode.OK
        except TimeoutError:
            return False
        finally:
            await self.abort()

    async def abort(self) -> None:
        """Let go at once, without a word."""
        self.drop()
        await self._session.close()

    def drop(self) -> None:
        """The first part of that, which cannot be interrupted. Politely closed, it would wait for a peer to read."""
        self._socket._response.close()
        if self._transport is not None:
            self._transport.abort()


async def connect(url: str, secret: str = "", ssl_context: ssl.SSLContext | None = None) -> WorkerSocket:
    """Reach the worker and agree with it. Raises Unreachable, or ProtocolError if it says nonsense, within a bound."""
    try:
        async with asyncio.timeout(limits.LINK_CONNECT_SECONDS):
            return await _connected(url, secret, ssl_context)
    except TimeoutError:
        raise Unreachable(
            f"The worker at {_place(url)} did not answer within {limits.LINK_CONNECT_SECONDS:g} seconds. Look whether "
            "it is busy with another run, or is no worker."
        ) from None
    except LinkLost:
        raise Unreachable(f"The worker at {_place(url)} closed the connection before it said hello.") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise Unreachable(_explained(url, error)) from None


async def _connected(url: str, secret: str, ssl_context: ssl.SSLContext | None) -> WorkerSocket:
    session = aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(), trace_configs=[_no_redirects()]
    )
    try:
        websocket = await session.ws_connect(
            url,
            protocols=[SUBPROTOCOL],
            headers={"Authorization": f"Bearer {secret}"} if secret else {},
            ssl=ssl_context or True,
            max_msg_size=limits.LINK_FRAME_BYTES,
            autoping=False,  # or pongs, which are signs of life, would be kept from us
            timeout=aiohttp.ClientWSTimeout(ws_close=limits.LINK_CLOSE_SECONDS),
        )
    except BaseException:
        await session.close()
        raise
    socket = WorkerSocket(session, websocket)
    try:
        if not socket.is_plain:
            await socket.send(Hello())
            _check_hello(await socket.receive())
    except BaseException:
        await socket.abort()
        raise
    return socket


def _check_hello(data: str) -> None:
    try:
        hello = _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"its first frame cannot be understood: {error}") from None
    if not isinstance(hello, Hello) or hello.version < VERSION:
        raise ProtocolError(f"its first frame is not a hello of version {VERSION}")


def _no_redirects() -> aiohttp.TraceConfig:
    """A worker sends nobody anywhere: a redirect could lead our next request, and a run, to another machine (A42)."""

    async def refuse(*_: object) -> None:
        raise aiohttp.ClientError("it redirects, which a worker never does")

    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(refuse)
    return config


def _explained(url: str, error: Exception) -> str:
    """What went wrong, never in the library's own words where those hold the address: its path may be the secret."""
    place = _place(url)
    match error:
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError() | ValueError():
            return "The worker's address is none. It looks like ws://127.0.0.1:4748 or wss://host:port."
        case aiohttp.WSServerHandshakeError(status=(401 | 403) as status):
            return f"The worker at {place} refused our secret (HTTP {status}). Give the one it was started with."
        case aiohttp.ClientResponseError():
            return f"There is no worker at {place}: it answered with HTTP {error.status}."
        case _:
            return f"The worker at {place} cannot be reached: {shortened(str(error) or type(error).__name__)}."


def _place(url: str) -> str:
    """Where it is, without the path: that may be the secret (A39)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
