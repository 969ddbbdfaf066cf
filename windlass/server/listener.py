"""Sockets and the HTTP protocol on them: uvicorn's, with bounds on headers and time.

We run its protocol ourselves instead of its server: ours has its own signals and its own way to leave, and no timer
that wakes up ten times a second.
"""

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from windlass import limits
from windlass.errors import WindlassError


class ListenError(WindlassError):
    """An address cannot be listened on; the message says why."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that must say what it wants in time and in few enough bytes (A37)."""

    _header_timer: asyncio.TimerHandle | None = None
    _header_bytes = 0
    is_unwelcome: "Callable[[socket.socket], bool] | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # The usual 64 KB, for every client that has stopped reading, would be most of what it costs us.
        transport.set_write_buffer_limits(high=limits.STREAM_BUFFER_BYTES)
        if len(self.connections) > limits.CONNECTIONS:
            self._refuse(b"503 Service Unavailable", b"Too many connections.")
            return
        if self.is_unwelcome is not None and self._asks(self.is_unwelcome):
            self._refuse(b"403 Forbidden", b"Commands of an agent are not let in here.")
            return
        self._expect_headers()

    def _asks(self, question: "Callable[[socket.socket], bool]") -> bool:
        # A socket of our own, of a copy of the descriptor: what a transport hands out cannot be asked on every loop.
        with socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno())) as connection:
            return question(connection)

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        self._headers_came()
        self._expect_headers()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._headers_came()
        if self.transport.is_closing():
            return
        if not self.url.startswith(b"/"):
            # An absolute URI names a host of its own: without a Host header the door refuses it (A4).
            self.headers[:] = [header for header in self.headers if header[0] != b"host"]
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        too_many = self.headers is not None and len(self.headers) >= limits.REQUEST_HEADER_COUNT
        if self._header_bytes > limits.REQUEST_HEADER_BYTES or too_many:
            self._refuse(b"431 Request Header Fields Too Large", b"The request's headers are too large.")

    def _expect_headers(self) -> None:
        self._header_timer = self.loop.call_later(limits.REQUEST_HEADER_SECONDS, self._too_slow)

    def _headers_came(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _too_slow(self) -> None:
        self._header_timer = None
        self._refuse(b"408 Request Timeout", b"The request took too long to arrive.")

    def _refuse(self, status: bytes, message: bytes) -> None:
        if self.transport.is_closing():
            return
        body = b'{"message":"%s"}' % message
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.close()


class Listener:
    """One address that is listened on. `is_unwelcome` decides by a connection's other end whether it is refused."""

    def __init__(
        self,
        address: str,
        app: Any,
        tls: ssl.SSLContext | None = None,
        is_unwelcome: Callable[[socket.socket], bool] | None = None,
    ) -> None:
        self.address = address
        self._is_unwelcome = is_unwelcome
        self._state = ServerState()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._socket: socket.socket | None = None
        self._socket_path: Path | None = None
        self._config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            loop="none",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=75,
        )
        self._config.load()

    def bind(self) -> None:
        """Take the address, without accepting anyone yet."""
        if self._socket is not None:
            return
        try:
            if self.address.startswith("unix:"):
                if self.address == "unix:":
                    raise ListenError("'unix:' is not an address to listen on. Write HOST:PORT or unix:PATH.")
                self._socket_path = Path(self.address.removeprefix("unix:"))
                self._socket = _unix_socket(self._socket_path)
            else:
                self._socket = _tcp_socket(self.address)
        except OSError as error:
            raise self._refusal(error) from None

    async def start(self) -> str:
        """Listen; returns the URL clients use."""
        self.bind()
        sock = self._socket
        assert sock is not None
        loop = asyncio.get_running_loop()
        try:
            if self._socket_path is not None:
                self._server = await loop.create_unix_server(self._protocol, sock=sock)
                return self.address
            self._server = await loop.create_server(self._protocol, sock=sock, ssl=self._tls, backlog=1024)
        except OSError as error:  # two that were bound to one port: only one of them gets to listen
            raise self._refusal(error) from None
        host, port = sock.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls else 'http'}://{shown}:{port}"

    def _refusal(self, error: OSError) -> ListenError:
        hint = " Choose another with --listen, such as 127.0.0.1:0." if error.errno == errno.EADDRINUSE else ""
        return ListenError(f"Cannot listen on {self.address}: {error.strerror or error}.{hint}")

    def close_unused(self) -> None:
        """Let go of an address that was taken and never listened on."""
        if self._server is None and self._socket is not None:
            self._socket.close()
            if self._socket_path is not None:
                self._socket_path.unlink(missing_ok=True)

    @property
    def port(self) -> int:
        """The TCP port, once it is bound; 0 for a Unix socket."""
        return self._socket.getsockname()[1] if self._socket is not None and self._socket_path is None else 0

    def _protocol(self) -> BoundedProtocol:
        protocol = BoundedProtocol(config=self._config, server_state=self._state, app_state={})
        protocol.is_unwelcome = self._is_unwelcome
        return protocol

    def refuse_new(self) -> None:
        """Take no more connections; those there are go on."""
        if self._server is not None:
            self._server.close()

    async def stop(self, seconds: float) -> None:
        """Close every connection once its answer is written, at the latest after `seconds`."""
        self.refuse_new()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=seconds)
        for connection in list(self._state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        if self._socket_path is not None:
            self._socket_path.unlink(missing_ok=True)


def _tcp_socket(address: str) -> socket.socket:
    host, separator, port = address.rpartition(":")
    host = host.strip("[]")
    if not separator or not port.isdigit() or int(port) > 65535 or not host:
        raise ListenError(f"{address!r} is not an address to listen on. Write HOST:PORT or unix:PATH.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, int(port)))
    except BaseException:
        sock.close()
        raise
    return sock


def _unix_socket(path: Path) -> socket.socket:
    """A socket only we can reach: mode 0600 in a directory that is ours alone (A13)."""
    parent = path.parent
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if parent.stat().st_mode & 0o077:
        raise ListenError(f"The directory of {path} can be entered by others. Run: chmod 700 {parent}")
    if path.is_symlink() or (path.exists() and not stat.S_ISSOCK(path.stat().st_mode)):
        raise ListenError(f"{path} exists and is not a socket. Remove it, or choose another path.")
    if path.exists():
        _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
        path.chmod(0o600)
    except BaseException:
        sock.close()
        raise
    return sock


def _remove_stale(path: Path) -> None:
    """Remove a socket nobody answers on (R46); one that answers belongs to a living server."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(str(path))
    except OSError:
        path.unlink()
    else:
        raise ListenError(f"Another server is listening on {path}.")
    finally:
        probe.close()
