"""The server's side of the guardian: starts it, asks it for processes, and starts another when it is lost."""

import asyncio
import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import windlass
from windlass import limits
from windlass.guardian.process import GuardedProcess
from windlass.wire.tools import Fence

# The folder of the package is appended, not put first, so that nothing beside it can stand in for the standard library.
# Modules stay for good, so nobody looks for rubbish among them while they load; at the end nothing is left to tidy, and
# the interpreter would take its modules apart one by one: together a third of what a guardian costs.
_BOOT = (
    "import gc, os, sys; gc.disable(); sys.path.append(sys.argv[1]); "
    "from windlass.guardian.main import main; gc.freeze(); gc.enable(); "
    "main(int(sys.argv[2])); sys.stderr.flush(); os._exit(0)"
)


class Guardian:
    """Starts processes that cannot outlive this one (the `Spawner` port). One per server; works on any asyncio loop.

    When the guardian process is lost, what it kept is killed, `wait` answers "lost", and the next `spawn` starts
    another guardian.
    """

    def __init__(self) -> None:
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._processes: set[GuardedProcess] = set()
        self._closed = False

    @classmethod
    async def start(cls) -> "Guardian":
        guardian = cls()
        await guardian._linked()
        return guardian

    @property
    def pid(self) -> int:
        """The process that everything we start descends from; 0 while there is none."""
        return 0 if self._link is None else self._link.pid

    @property
    def running(self) -> int:
        """How many commands are running or being started."""
        return len(self._processes)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: dict[str, str],
        stdin: int | None = None,
        stderr: int | None = None,
        fence: Fence | None = None,
    ) -> GuardedProcess:
        """Start a command with exactly this environment; raises OSError when it cannot be executed.

        `stdin` is a descriptor that becomes its standard input, which is empty otherwise. With it may come `stderr`,
        for a command whose errors are not to be mixed into its output. The caller closes its own copies when this has
        returned. Cancelling leaves nothing behind: what had been started is killed before CancelledError goes on.
        `fence` is what the kernel is to keep it from; a command that cannot be confined is not started.
        """
        wanted = {"argv": list(argv), "cwd": cwd, "env": env}
        if fence is not None:
            wanted["fence"] = {"paths": fence.paths, "ports": fence.ports}
        spec = json.dumps(wanted).encode() + b"\n"
        if len(spec) > limits.GUARDIAN_MESSAGE_BYTES:
            raise OSError(errno.E2BIG, f"Command and environment are over {limits.GUARDIAN_MESSAGE_BYTES} bytes")
        if len(self._processes) >= limits.PROCESSES:
            raise OSError(errno.EAGAIN, f"{limits.PROCESSES} commands are running; wait until one has ended")
        if stderr is not None and stdin is None:
            raise ValueError("A stderr of its own needs a stdin: descriptors are told apart by their place.")
        reading, writing = os.pipe()
        process = GuardedProcess(reading)
        self._processes.add(process)
        process.ended.add_done_callback(lambda _: self._processes.discard(process))
        try:
            os.set_blocking(reading, False)
            streams = [writing, *(given for given in (stdin, stderr) if given is not None)]
            await self._connect(process, streams, fence.ports if fence is not None else ())
            await process.start(spec)
        except BaseException:
            await process.abandon()
            raise
        finally:
            os.close(writing)
        return process

    async def _connect(self, process: GuardedProcess, streams: list[int], ports: tuple[int, ...]) -> None:
        """Have the guardian fork a keeper, and connect `process` to it. `streams`: output, perhaps input and errors."""
        ours, keepers = socket.socketpair()
        with keepers:
            try:
                ours.setblocking(False)
                await self._request_keeper([keepers.fileno(), *streams], ports)
                await asyncio.get_running_loop().create_unix_connection(lambda: process, sock=ours)
            except BaseException:
                ours.close()
                raise

    async def _request_keeper(self, descriptors: list[int], ports: tuple[int, ...]) -> None:
        link = await self._linked()
        try:
            link.request_keeper(descriptors, ports)
        except ConnectionError:
            # It has just ended and the loop has not told us yet. Nothing was started, so a second try is safe.
            link.lost = True
            (await self._linked()).request_keeper(descriptors, ports)

    async def _linked(self) -> "_Link":
        async with self._linking:
            if self._closed:
                raise OSError(errno.ESHUTDOWN, "The guardian is closed")
            if self._link is None or self._link.lost:
                await self._unlink()
                self._link = await _Link.start()
            return self._link

    async def _unlink(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.aclose()

    async def aclose(self) -> None:
        """Kill what still runs, end the guardian, and return when both are gone. Safe to call twice."""
        self._closed = True
        for process in self._processes:
            # So that it is told as "killed"; the closing of the link right after it is what ends it, without grace.
            process.kill()
        async with self._linking:
            await self._unlink()
        if self._processes:
            endings = {process.ended for process in self._processes}
            await asyncio.wait(endings, timeout=limits.GUARDIAN_END_SECONDS)
        for process in list(self._processes):
            process.drop()


class _Link:
    """One guardian process and the socket to it. The process leaves when the socket is closed."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._ports: tuple[int, ...] = ()
        self.pid = process.pid
        self.lost = False

    @classmethod
    async def start(cls) -> "_Link":
        ours, guardians = socket.socketpair()
        ours.setblocking(False)
        with guardians:
            try:
                process = _start_process(guardians.fileno())
            except OSError:
                ours.close()
                raise
        link = cls(process, ours)
        try:
            await link._ready()
        except BaseException:
            await link.aclose()
            raise
        return link

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limits.GUARDIAN_SPAWN_SECONDS):
                said = await loop.sock_recv(self._connection, 1)
        except TimeoutError:
            raise TimeoutError(errno.ETIMEDOUT, "The guardian did not start in time") from None
        if said != b"r":
            raise OSError(errno.ECHILD, "The guardian process ended while it was starting")
        # It never says anything more: readable means that it is gone.
        loop.add_reader(self._connection.fileno(), self._notice_end)

    def _notice_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._connection.fileno())
        self.lost = True
        # A zombie until someone waits; it is ending, so this is short.
        self._process.wait()

    def request_keeper(self, descriptors: list[int], ports: tuple[int, ...]) -> None:
        """Hand the descriptors over. The buffer holds more requests than PROCESSES, so a full one is an error."""
        if ports and ports != self._ports:
            self._tell_ports(ports)
        socket.send_fds(self._connection, [b"+"], descriptors)

    def _tell_ports(self, ports: tuple[int, ...]) -> None:
        """Which ports confined commands are kept from: told when it changes, because preparing it takes a while."""
        reading, writing = os.pipe()
        try:
            os.write(writing, json.dumps(ports[: limits.FENCE_PORTS]).encode())  # far less than a pipe holds
            socket.send_fds(self._connection, [b"p"], [reading])
        finally:
            os.close(reading)
            os.close(writing)
        self._ports = ports

    async def aclose(self) -> None:
        loop = asyncio.get_running_loop()
        if self._connection.fileno() >= 0:
            loop.remove_reader(self._connection.fileno())
            self._connection.close()
        ending = loop.run_in_executor(None, self._process.wait)
        done, _ = await asyncio.wait({ending}, timeout=limits.GUARDIAN_END_SECONDS)
        if not done:
            # Stopped or stuck. Its keepers see it go and end what they keep.
            self._process.kill()
            await ending


def _start_process(descriptor: int) -> "subprocess.Popen[bytes]":
    """Not awaited: it takes a millisecond or two, once, and leaves no moment in which a cancel would lose a child."""
    package = str(Path(windlass.__file__).parent.parent)
    # Only what the interpreter may need to find its libraries: a command can read its ancestors' environment (A30).
    environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, package, str(descriptor)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(descriptor,),
        env=environment,
        cwd="/",
        start_new_session=True,
    )
