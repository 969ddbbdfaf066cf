"""Everything that runs during a measurement: a provider, a server under test, and a crowd of clients."""

import asyncio
import contextlib
import os
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench import proc
from bench.child import ROOT, Answer, Child
from windlass.testing.server_process import WAIT_SECONDS, Api, ServerProcess
from windlass.testing.stem import Forked

# The context window is far beyond any history here: what is measured must not be cut away.
_CONFIG = """\
model = "bench/bench"
[providers.bench]
type = "openai"
base_url = "http://127.0.0.1:{port}/v1"
api_key = "secretcanary-of-the-bench"
models = [{{ id = "bench", context_window = 100000000 }}]
[permissions]
allow = ["*"]
ask = []
[runs]
placement = "{placement}"
"""
# A workspace must stay open while nobody streams, and nothing is waited for at the end.
_OPTIONS = ("--create-grace", "3600", "--detach-grace", "1", "--drain", "0")
_REQUESTS_AT_ONCE = 50
Result = TypeVar("Result")


class ServerUnderTest(ServerProcess):
    """`windlass serve`, or a module of ours that runs it with something built in."""

    def __init__(self, directory: Path, provider_port: int, module: str, placement: str) -> None:
        config = _CONFIG.format(port=provider_port, placement=placement)
        super().__init__(directory, *_OPTIONS, config=config)
        self.program = module
        self.start_seconds = 0.0  # from the start of the process until it says that it is ready

    async def start(self, environment: dict[str, str] | None = None) -> ServerProcess:
        began = time.monotonic()
        watcher = asyncio.create_task(asyncio.to_thread(self._watch, began))
        try:
            return await super().start(environment)
        finally:
            await watcher

    def _watch(self, began: float) -> None:
        """Look more often than the one who waits for it to be ready: this is a measurement."""
        while not self._ready_file.exists() and time.monotonic() - began < WAIT_SECONDS:
            time.sleep(0.001)
        self.start_seconds = time.monotonic() - began

    def _launch(self, argv: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes] | Forked":
        return super()._launch(argv, {**environment, "PYTHONPATH": str(ROOT), "BENCH_DIRECTORY": str(self.directory)})


class World:
    """One server with one open workspace."""

    def __init__(self, server: ServerUnderTest, api: Api, provider: Child, crowd: Child, project: Path) -> None:
        self.server = server
        self.api = api
        self.provider = provider
        self.crowd = crowd
        self.project = project
        self._turn = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    @property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    def cpu(self) -> float:
        return proc.cpu_seconds(self.server.pid)

    def memory(self) -> int:
        return proc.memory_bytes(self.server.pid)

    async def new_sessions(self, count: int) -> list[str]:
        return list(await asyncio.gather(*(self._in_turn(self.api.new_session()) for _ in range(count))))

    async def prompt_all(self, sessions: Sequence[str], prompt: str) -> list[str]:
        """Prompt every session; the run ids, once all are accepted."""
        answers = await asyncio.gather(*(self._in_turn(self.api.prompt(id, prompt)) for id in sessions))
        return [answer["run_id"] for answer in answers]

    async def _in_turn(self, work: Coroutine[Any, Any, Result]) -> Result:
        async with self._turn:
            return await work

    def stream_path(self, client_id: str, *, deltas: bool = True, after: str = "") -> str:
        query = ("&deltas=1" if deltas else "") + (f"&after={after}" if after else "")
        return f"/v1/workspaces/{self.api.workspace_id}/events?client_id={client_id}{query}"

    def stream_request(self, **query: Any) -> bytes:
        """The bytes with which a new client asks for the stream."""
        head = f"GET {self.stream_path(str(uuid.uuid4()), **query)} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\n"
        return f"{head}authorization: Bearer {self.server.token}\r\n\r\n".encode()

    async def attach(self, clients: int, *, stalled: bool = False, ids: int = 0) -> Answer:
        """Let the crowd attach that many streams, of `ids` clients (0: one each); counts of the statuses they got."""
        names = [str(uuid.uuid4()) for _ in range(ids or clients)]
        paths = [self.stream_path(names[number % len(names)]) for number in range(clients)]
        answer = await self.crowd.ask("connect", port=self.port, token=self.server.token, stalled=stalled, paths=paths)
        statuses: Answer = answer["statuses"]
        return statuses


@contextlib.asynccontextmanager
async def world(
    scratch: Path, *, module: str = "windlass", name: str = "", placement: str = "local"
) -> AsyncIterator[World]:
    """A fresh world below `scratch`; leaving it ends every process. The same name again is the same data.

    `placement`: where its runs are executed, as the config says it.
    """
    directory = scratch / (name or uuid.uuid4().hex[:8])
    project = directory / "project"
    project.mkdir(parents=True, exist_ok=True)
    async with contextlib.AsyncExitStack() as stack:
        provider = await stack.enter_async_context(Child("bench.provider"))
        crowd = await stack.enter_async_context(Child("bench.crowd"))
        server = ServerUnderTest(directory / "server", provider.port, module, placement)
        await stack.enter_async_context(server)
        api = await stack.enter_async_context(Api(server))
        await api.open(project)
        yield World(server, api, provider, crowd, project)


def machine() -> str:
    """What this was measured on, in a line."""
    model = "an unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    system = os.uname()
    return f"{model}, {os.cpu_count()} cores, {kilobytes / 1024 / 1024:.0f} GB, {system.sysname} {system.release}"
