"""Starting a worker process of our own: through the guardian, its secrets on its standard input (A39, B59, I22)."""

import asyncio
import os
import re
import secrets
import sys
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec
import structlog

from windlass import limits
from windlass.fleet.pool.worker_input import WorkerInput
from windlass.fleet.pool.worker_output import WorkerOutput
from windlass.wire.tools import Process, ProcessExit
from windlass.wire.worker import WorkerSpec

logger = structlog.get_logger("windlass.worker")
# -P: else Python would import from the current directory before its own library.
PROGRAM = (sys.executable, "-P", "-m", "windlass", "worker")
# Loopback only, whatever it prints: we go where we told it to listen and nowhere else.
_ADDRESS = re.compile(r"ws://127\.0\.0\.1:(\d{1,5})\b")


class WorkerFailed(Exception):
    """A worker could not be started. The message is for a person."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The worker could not be started: {what}")


class InputSpawner(Protocol):
    """Starts processes that cannot outlive this one, and hands them their standard input (the guardian)."""

    async def spawn(
        self, argv: Sequence[str], *, cwd: str, env: dict[str, str], stdin: int | None = None
    ) -> Process: ...


async def spawn_worker(
    spawner: InputSpawner,
    spec: WorkerSpec,
    environment: dict[str, str],
    *,
    program: Sequence[str] = PROGRAM,
    idle_seconds: float = limits.WORKER_IDLE_SECONDS + limits.WORKER_IDLE_MARGIN_SECONDS,
) -> "WorkerProcess":
    """Start a reusable worker and return when it listens; raises WorkerFailed. Cancelling leaves nothing behind.

    `environment` is all it sees of ours, so it holds no credential. The secret is made here, whatever the spec says.
    """
    spec = msgspec.structs.replace(spec, secret=secrets.token_urlsafe(32), parent_fd=0)
    argv = [*program, "--spec-stdin", "--mode", "reusable", "--listen", "127.0.0.1:0"]
    argv += ["--idle-timeout", f"{idle_seconds:g}"]
    reading, writing = os.pipe()
    try:
        # "/": a workspace is no place to start a program from.
        process = await spawner.spawn(argv, cwd="/", env=environment, stdin=reading)
    except BaseException as error:
        os.close(writing)
        if isinstance(error, OSError):
            raise WorkerFailed(f"{error}.") from None
        raise
    finally:
        os.close(reading)
    worker = WorkerProcess(process, spec.secret, writing)
    try:
        await worker.start(msgspec.json.encode(spec) + b"\n")
    except BaseException:
        await worker.close()
        raise
    return worker


class WorkerProcess:
    """A worker that listens. `uses` counts the runs it was given; `ended` tells how it and all it started went."""

    def __init__(self, process: Process, secret: str, input: int) -> None:
        self.url = ""
        self.secret = secret
        self.pid = process.pid
        self.started_at = time.monotonic()
        self.uses = 0
        self.ended: ProcessExit | None = None
        self._process = process
        self._input = WorkerInput(input)
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._output = WorkerOutput(process.output, self._heard)
        self._watching = asyncio.create_task(self._watch(), name=f"worker {process.pid}")

    @property
    def alive(self) -> bool:
        return self.ended is None

    async def start(self, spec: bytes) -> None:
        """Tell it what it is, and return when it has said where it listens."""
        self._input.write(spec)
        try:
            async with asyncio.timeout(limits.WORKER_START_SECONDS):
                self.url = await self._address
        except TimeoutError:
            raise WorkerFailed(
                f"it did not listen within {limits.WORKER_START_SECONDS:g} seconds.{self._last_words()}"
            ) from None

    def _heard(self, line: str) -> None:
        found = _ADDRESS.search(line)
        if found is not None and not self._address.done():
            self._address.set_result(found[0])
            self._output.last.clear()
        if self.secret in line:
            return  # its address holds the secret, and a log is read by others (A39)
        logger.info("worker says", pid=self.pid, line=line)

    async def _watch(self) -> None:
        exit = await self._process.wait()
        self._output.close()
        self._input.close()
        self.ended = exit
        if not self._address.done():
            self._address.set_exception(WorkerFailed(f"it ended with {_how(exit)}.{self._last_words()}"))
            self._address.exception()  # marked as seen: whoever waited may have been cancelled

    def _last_words(self) -> str:
        lines = [line for line in self._output.last if self.secret not in line]
        return " Its last words: " + " / ".join(lines) if lines else " It said nothing."

    async def close(self) -> None:
        """End it and everything it started, and return when that is over or a bound has passed. Safe to call twice."""
        self._process.kill()
        done, _ = await asyncio.wait({self._watching}, timeout=limits.GUARDIAN_END_SECONDS)
        if not done:
            # Something of it runs as somebody else, or its keeper was stopped. The guardian goes on trying.
            logger.error("a worker could not be ended", pid=self.pid)


def _how(exit: ProcessExit) -> str:
    return f"signal {-exit.exit_code}" if exit.exit_code < 0 else f"exit code {exit.exit_code}"
