"""Starting a server where none is running: one, however many clients want it in the same instant (R45).

It follows its clients (`--exit-when-idle`), belongs to no terminal, and writes what it prints to `server.log` in the
data directory. Whoever starts one holds a lock there, and looks again when it has it.
"""

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from windlass import limits
from windlass.client.client import Client
from windlass.client.discovery import ServerAddress, is_alive, local_server
from windlass.client.errors import NoServer, ServerNotStarted
from windlass.errors import TooMany, WindlassError

LOG_FILE = "server.log"
LOCK_FILE = "start.lock"
_SERVE = (sys.executable, "-m", "windlass", "serve", "--listen", "127.0.0.1:0", "--exit-when-idle")
_WRITER_FILE = "lock"  # the server's own: who writes the data directory


class Started(msgspec.Struct, frozen=True):
    """`new`: we started it. Otherwise somebody else was quicker."""

    address: ServerAddress
    new: bool


async def answering(data_dir: Path) -> ServerAddress | None:
    """The data directory's server, if it answers. Raises ServerNotFound when its file is no good (see discovery)."""
    try:
        address = await asyncio.to_thread(local_server, data_dir)
    except NoServer:
        return None
    # Without the token: a process of that number may be somebody else's by now, and so may the port.
    async with Client(address.url, retries=0, certificate=address.certificate) as probe:
        try:
            await probe.transport.call("GET", "/health", type(None), seconds=limits.START_PROBE_SECONDS)
        except TooMany:
            return address  # busy is alive
        except WindlassError:
            return None  # it has just left, or it crashed and its number was given to another process
    return address


async def start(data_dir: Path) -> Started:
    """Start a server for the data directory, or join the one that another client starts. Returns when it is ready.

    Raises ServerNotStarted, with its last words. Cancelling this leaves a server that was started to itself: it leaves
    when nobody comes.
    """
    data_dir = await asyncio.to_thread(_prepared, data_dir)
    async with _alone(data_dir):
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limits.START_SECONDS
        while (found := await answering(data_dir)) is None:
            attempt = await asyncio.to_thread(_Attempt, data_dir)
            address = await attempt.until_ready(deadline)
            if address is not None:
                return Started(address, new=True)
            if loop.time() > deadline or not await asyncio.to_thread(attempt.is_in_use):
                raise await asyncio.to_thread(attempt.failure)
            # Another server is on its way in or out: it holds the directory, and is not yet or no longer to be found.
            await asyncio.sleep(limits.START_LOOK_SECONDS)
    return Started(found, new=False)


def _prepared(data_dir: Path) -> Path:
    """Make the directory as a server would: what is put into it here must not make it refuse the directory."""
    data_dir = data_dir.absolute()  # the server is started elsewhere
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data_dir.stat().st_mode & 0o077 and not any(data_dir.iterdir()):
            data_dir.chmod(0o700)
    except OSError as error:
        raise ServerNotStarted(
            f"{data_dir} cannot be used: {error.strerror}. Choose another --data-dir, or name a server with --url."
        ) from None
    return data_dir


@asynccontextmanager
async def _alone(data_dir: Path) -> AsyncIterator[None]:
    """Hold the right to start a server here. The kernel takes it back from a client that dies."""
    descriptor = await asyncio.to_thread(_opened, data_dir / LOCK_FILE, os.O_RDWR)
    try:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + limits.START_TURN_SECONDS
        while not await asyncio.to_thread(_locked, descriptor):
            if loop.time() > deadline:
                raise ServerNotStarted("Another client has been starting a server for a minute. Try `windlass serve`.")
            # Looked at, not waited for: a thread inside flock could not be left by Ctrl-C.
            await asyncio.sleep(limits.START_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(path: Path, flags: int) -> int:
    try:
        # O_NOFOLLOW: a link that was laid there is refused; what it points to is not ours to write.
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ServerNotStarted(
            f"{path} cannot be used: {error.strerror}. Remove it, or run `windlass serve`."
        ) from None


class _Attempt:
    """One server process, from its start until it is ready or over."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._log = data_dir / LOG_FILE
        if self._log.exists() and self._log.stat().st_size > limits.START_LOG_BYTES:
            os.replace(self._log, self._log.with_name(f"{LOG_FILE}.1"))
        log = _opened(self._log, os.O_WRONLY | os.O_APPEND)
        try:
            self._said_before = os.fstat(log).st_size
            self._process = subprocess.Popen(
                [*_SERVE, "--data-dir", str(data_dir)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # What it logs is in a file of its own, which is bounded; this one is for what it dies of.
                env={**os.environ, "WINDLASS_LOG_SHOWN": "error"},
                # Python looks for modules where it is started: a workspace is no place to start a program from.
                cwd="/",
                # In a session of its own: the terminal's Ctrl-C and its closing are meant for the client.
                start_new_session=True,
            )
        except OSError as error:
            raise ServerNotStarted(f"{sys.executable} could not be started: {error.strerror}.") from None
        finally:
            os.close(log)
        # Somebody has to hear of its end while we live, or its number would look alive to everyone for as long.
        threading.Thread(target=self._process.wait, name="started server", daemon=True).start()

    async def until_ready(self, deadline: float) -> ServerAddress | None:
        """Where it is, once it accepts connections; None when it ended instead, or is not ready in time."""
        loop = asyncio.get_running_loop()
        while loop.time() < deadline and self._process.returncode is None:
            address = await asyncio.to_thread(self._address)
            if address is not None:
                return address
            await asyncio.sleep(limits.START_LOOK_SECONDS)
        return None

    def _address(self) -> ServerAddress | None:
        try:
            address = local_server(self._data_dir)
        except NoServer:
            return None
        return address if address.pid == self._process.pid else None

    def is_in_use(self) -> bool:
        """Whether another living process writes the data directory, so that this one had to end."""
        try:
            owner = int((self._data_dir / _WRITER_FILE).read_text())
        except (OSError, ValueError):
            return False
        return self._process.returncode is not None and owner != self._process.pid and is_alive(owner)

    def failure(self) -> ServerNotStarted:
        """What became of it, and its last words."""
        code = self._process.returncode
        if code is None:
            after = f"The server that was started (process {self._process.pid}) is not ready after"
            return ServerNotStarted(
                f"{after} {limits.START_SECONDS:g} s. It goes on: try again in a moment, or see {self._log}.",
                self._last_words(),
            )
        return ServerNotStarted(
            f"No server was running, and one that was started ended at once (exit code {code}). Mend what it says, "
            f"then try again. All of its words are in {self._log}.",
            self._last_words(),
        )

    def _last_words(self) -> tuple[str, ...]:
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._said_before, size - limits.START_WORDS_BYTES))
            return tuple(log.read().decode("utf-8", "replace").splitlines())
