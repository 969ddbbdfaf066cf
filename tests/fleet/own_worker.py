"""A worker in the test's own process, over real sockets; and one in a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from windlass.fleet.worker.echo import EchoExecutor
from windlass.fleet.worker.worker import Worker, WorkerAddress, WorkerOptions
from windlass.testing.server_process import ServerProcess, until
from windlass.testing.stem import Forked
from windlass.testing.watched_program import SIGN

_BOUNDED = """
import runpy
from windlass import limits
for name, value in {bounds!r}.items():
    assert hasattr(limits, name), name
    setattr(limits, name, value)
runpy.run_module({program!r}, run_name="__main__", alter_sys=True)
"""


@contextlib.asynccontextmanager
async def own_worker(factory: Any = EchoExecutor, **options: Any) -> AsyncIterator[WorkerAddress]:
    """Serves in mode service unless told otherwise, until the block is left."""
    worker = Worker(WorkerOptions(**{"mode": "service", **options}), factory)
    address = await worker.start()
    try:
        yield address
    finally:
        worker.stop()
        await worker.left()


class WorkerProcess:
    """`windlass worker` as a child process.

    `forked`: from a process that has loaded it already, which is a tenth of the cost. Not for a test that looks at what
    a start leaves in the process: its modules, its memory, its arguments and environment in /proc.
    `bounds`: limits that are others than ours in that process, for a test of what happens once one has passed.
    `watched`: calls that block its event loop raise; not where blocking is what a test is about.
    """

    process: "subprocess.Popen[bytes] | Forked"

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        executor: str = "echo",
        spec: Any = None,
        forked: bool = False,
        bounds: dict[str, float] | None = None,
        watched: bool = True,
    ) -> None:
        self.directory = directory
        self.log_file = directory / "worker.log"
        self.ready_file = directory / "ready.json"
        self._spec = spec
        self._forked = forked
        program = "windlass.testing.watched_program" if watched else "windlass"
        self.argv = [sys.executable, "-m", program, "worker"]
        if bounds is not None:
            assert not forked, "a forked process has read its limits already"
            self.argv[1:3] = ["-c", _BOUNDED.format(bounds=bounds, program=program)]
        self.argv += ["--executor", executor] if executor else []
        self.argv += ["--ready-file", str(self.ready_file), *arguments]
        self.url = ""
        self.token = ""

    async def launch(self, **options: Any) -> "WorkerProcess":
        with self.log_file.open("ab") as log:
            if self._forked:
                assert ServerProcess.stem is not None and not options
                program = self.argv[2:]
                self.process = ServerProcess.stem.fork(
                    program, dict(os.environ), log.fileno(), directory=str(self.directory)
                )
                return self
            self.process = subprocess.Popen(  # noqa: ASYNC220  # the test's own loop: nobody else waits for it
                self.argv,
                stdout=log,
                stderr=log,
                stdin=options.pop("stdin", subprocess.DEVNULL),
                cwd=self.directory,
                env={**os.environ, **options.pop("environment", {})},
                **options,
            )
        return self

    async def __aenter__(self) -> "WorkerProcess":
        await self.launch()
        return await self.ready()

    async def ready(self) -> "WorkerProcess":
        await until(self._is_ready, "the worker is ready")
        ready = json.loads(self.ready_file.read_bytes())
        self.url, self.token = ready["url"], ready["token"]
        assert ready["pid"] == self.process.pid
        return self

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the worker ended at its start:\n{self.log()}"
        return self.ready_file.exists()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    async def ended(self, seconds: float = 20.0) -> int:
        await until(lambda: self.process.poll() is not None, f"the worker has ended:\n{self.log()}", seconds)
        assert SIGN not in self.log()
        return self.process.returncode or 0

    async def __aexit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await self.ended()
            finally:
                self.process.kill()
                await until(lambda: self.process.poll() is not None, "the worker is gone")
