"""Accepting connections that are encrypted: each handshake is a task of ours, so that one that fails is heard of.

The event loop's own TLS server tells nobody of a handshake that failed; whoever counts connections would count it for
ever.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

import structlog

from windlass import limits
from windlass.fleet.worker.connection import Connection

logger = structlog.get_logger("windlass.worker")


class TlsListener:
    """`knock` makes the connection when somebody knocks; its end is told too when the handshake fails.

    At most WORKER_CONNECTIONS handshakes are under way, for REQUEST_HEADER_SECONDS each; who comes then waits in the
    kernel's line.
    """

    def __init__(self, bound: socket.socket, context: ssl.SSLContext, knock: Callable[[], Connection]) -> None:
        """Accepts from now on, until `aclose`."""
        self._bound = bound
        self._context = context
        self._knock = knock
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], tuple[socket.socket, Connection]] = {}
        self._fewer = asyncio.Event()
        bound.setblocking(False)
        bound.listen(limits.WORKER_CONNECTIONS)
        self._accepting = self._loop.create_task(self._accept(), name="accept")

    async def aclose(self) -> None:
        """Accept nobody any more, and give up the handshakes under way. Connections that are made stay."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        self._bound.close()
        for accepted, connection in self._handshakes.values():
            if not connection.is_made:
                # Not by cancelling: a handshake that is cancelled before its first step goes on in the event loop.
                with contextlib.suppress(OSError):  # the other end has gone meanwhile
                    accepted.shutdown(socket.SHUT_RDWR)
        if self._handshakes:
            await asyncio.wait(self._handshakes, timeout=limits.LINK_CLOSE_SECONDS)

    async def _accept(self) -> None:
        while True:
            while len(self._handshakes) >= limits.WORKER_CONNECTIONS:
                self._fewer.clear()
                await self._fewer.wait()
            try:
                accepted, _ = await self._loop.sock_accept(self._bound)
            except OSError as error:
                # Most likely there are no descriptors left: asking again at once would only burn the processor.
                logger.error("no connection can be accepted", error=error.strerror)
                await asyncio.sleep(limits.WORKER_ACCEPT_PAUSE_SECONDS)
                continue
            connection = self._knock()
            task = self._loop.create_task(self._shake_hands(accepted, connection), name="TLS handshake")
            self._handshakes[task] = (accepted, connection)
            task.add_done_callback(self._over)

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=limits.REQUEST_HEADER_SECONDS,
            )
        except OSError as error:  # errors of TLS and timeouts are some of these
            logger.warning("TLS handshake failed", error=type(error).__name__)
        finally:
            if not connection.is_made:
                connection.connection_lost(None)  # the loop does not say so, and its place would be taken for ever

    def _over(self, task: "asyncio.Task[None]") -> None:
        del self._handshakes[task]
        self._fewer.set()
