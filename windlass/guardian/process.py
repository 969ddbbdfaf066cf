"""The server's end of one command: what `Guardian.spawn` returns."""

import asyncio
import errno
import json
import os
from typing import Any, cast

from windlass import limits
from windlass.wire.tools import ProcessExit

_LOST = ProcessExit(exit_code=-9, reason="lost")


class GuardedProcess(asyncio.Protocol):
    """A command and everything it starts (the `Process` port). Its keeper is at the other end of the connection.

    `output` belongs to the caller of `spawn`, who reads and closes it. Dropping the connection ends the whole tree, so
    no path through the server, not even a crash, can leave a command running.
    """

    def __init__(self, output: int) -> None:
        loop = asyncio.get_running_loop()
        self.output = output
        self.ended: asyncio.Future[ProcessExit] = loop.create_future()
        self._started: asyncio.Future[int] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._abandoned = False
        self._pid = 0

    @property
    def pid(self) -> int:
        return self._pid

    async def wait(self) -> ProcessExit:
        """Return when the main process has ended and everything it left behind is gone."""
        # Shielded: a cancelled waiter must not cancel the future the others wait for.
        return await asyncio.shield(self.ended)

    def kill(self) -> None:
        """End the whole tree: politely at first, after KILL_GRACE_SECONDS with force. Harmless when it is over."""
        if self._transport is not None and not self._abandoned and not self._transport.is_closing():
            self._transport.write(b"kill\n")

    async def start(self, spec: bytes) -> None:
        """Say what to run and return when it runs; raises OSError when it cannot be executed."""
        assert self._transport is not None
        self._transport.write(spec)
        try:
            async with asyncio.timeout(limits.GUARDIAN_SPAWN_SECONDS):
                self._pid = await self._started
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, "The guardian did not start the command in time") from None

    async def abandon(self) -> None:
        """End it at once, for a caller who no longer wants it, and return when it is gone or a bound has passed."""
        self._close_output()
        if self._transport is None:
            self._end(_LOST)
            return
        if not self._transport.is_closing():
            self._abandoned = True
            # Half a close: the keeper takes it for our death and kills, and can still tell us when it has.
            self._transport.write_eof()
        await asyncio.wait({self.ended}, timeout=limits.GUARDIAN_END_SECONDS)
        self.drop()

    def drop(self) -> None:
        """Let go of the connection: the keeper, if there still is one, kills everything."""
        if self._transport is not None:
            self._transport.abort()

    def _close_output(self) -> None:
        if self.output >= 0:
            os.close(self.output)
            self.output = -1

    # -- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\n" in self._received:
            line, _, self._received = self._received.partition(b"\n")
            self._take(json.loads(line))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._started.done():
            self._started.set_exception(ConnectionResetError(errno.ECONNRESET, "The guardian was lost meanwhile"))
            # Marked as seen: a caller who was cancelled meanwhile will not ask for it.
            self._started.exception()
        self._end(_LOST)

    def _take(self, line: dict[str, Any]) -> None:
        match line:
            case {"pid": int(pid)} if not self._started.done():
                self._started.set_result(pid)
            case {"errno": int(number), "message": str(message)} if not self._started.done():
                self._started.set_exception(OSError(number, message))
            case {"exit_code": int(code), "reason": ("exited" | "killed" | "lost") as reason}:
                self._end(ProcessExit(code, reason))
                if self._transport is not None:
                    # It says nothing more. Left to the keeper, who hangs up a moment later, the connection would still
                    # be open when a server leaves that has waited for this end.
                    self._transport.close()

    def _end(self, how: ProcessExit) -> None:
        if not self.ended.done():
            self.ended.set_result(how)
