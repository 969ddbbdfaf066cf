"""A real server process for tests, and a plain HTTP client for it that knows nothing of the SDK.

The process is the one people run (`windlass serve`), on a free loopback port, with a data directory and a config of its
own. Only what the model says is decided by the test (`ModelServer`, or a script file).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from windlass.testing import canary
from windlass.testing.stem import Forked, Stem
from windlass.testing.watched_program import SIGN

WAIT_SECONDS = 60.0  # the longest a test waits for anything: four servers may start at once on a machine that is full


class ServerProcess:
    """`windlass serve` as a child process. `start`, `stop` (SIGTERM), `kill` (SIGKILL), and start again."""

    program = "windlass"  # the module that is run; tests run `windlass.testing.watched_program`
    stem: Stem | None = None  # tests fork that program from one that is loaded already

    def __init__(self, directory: Path, *arguments: str, config: str = "", listen: str = "127.0.0.1:0") -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.config_file = directory / "config.toml"
        self.log_file = directory / "server.log"
        self.url = ""
        self.token = ""
        self._arguments = arguments
        self._listen = listen
        self._ready_file = directory / "ready.json"
        self._process: subprocess.Popen[bytes] | Forked | None = None
        directory.mkdir(parents=True, exist_ok=True)
        canary.check_config(config)
        self.config_file.write_text(config)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self, environment: dict[str, str] | None = None) -> "ServerProcess":
        """Start the process and return when it accepts connections."""
        self._ready_file.unlink(missing_ok=True)
        argv = [sys.executable, "-m", self.program, "serve", "--listen", self._listen]
        argv += ["--data-dir", str(self.data_dir), "--config", str(self.config_file)]
        argv += ["--ready-file", str(self._ready_file), *self._arguments]
        self._process = self._launch(argv, environment or {})
        await until(self._is_ready, "the server is ready")
        ready = json.loads(self._ready_file.read_bytes())
        self.url, self.token = ready["url"], ready["token"]
        return self

    def _launch(self, argv: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes] | Forked":
        plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environment = {**canary.ENVIRONMENT, **environment}
        # What the interpreter and the loader are told, they must be told at the start of a program.
        is_plain = self.program != "windlass" and not any(name.startswith(("PYTHON", "LD_")) for name in environment)
        with self.log_file.open("ab") as log:
            if self.stem is not None and is_plain:
                return self.stem.fork(argv[2:], {**plain, **environment}, log.fileno())
            return subprocess.Popen(
                argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**plain, **environment}
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the server ended at its start:\n{self.log()}")
        return self._ready_file.exists()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    async def ended(self, seconds: float = WAIT_SECONDS) -> int:
        """Wait until the process is gone; its exit code."""
        process = self._process
        assert process is not None
        await until(lambda: process.poll() is not None, "the server has ended", seconds)
        blocking = [line for line in self.log().splitlines() if line.startswith(SIGN)]
        assert not blocking, "\n".join(blocking)
        canary.check_files(self.log_file, self.data_dir)
        return process.returncode or 0

    async def stop(self) -> int:
        if self._process is None or self._process.poll() is not None:
            return 0 if self._process is None else self._process.returncode or 0
        self._process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def kill(self) -> None:
        """End it as a power cut would: no handler runs."""
        assert self._process is not None
        self._process.kill()
        await self.ended()

    async def __aenter__(self) -> "ServerProcess":
        return await self.start()

    async def __aexit__(self, *exception: object) -> None:
        try:
            await self.stop()
        except AssertionError:
            await self.kill()
            raise


class Api:
    """One client of a server: its own UUID, its own connections, plain JSON in and out."""

    def __init__(self, server: ServerProcess, token: str | None = None, *, keep_alive: bool = True) -> None:
        """`keep_alive`: whether connections stay open between requests, which outlast the test that made them."""
        self.server = server
        self.client_id = str(uuid.uuid4())
        self.token = server.token if token is None else token
        connector = aiohttp.TCPConnector(force_close=not keep_alive)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=WAIT_SECONDS))
        self.workspace_id = ""

    async def __aenter__(self) -> "Api":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Status and decoded body; `path` may begin with `W` for the open workspace."""
        headers = {"Authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        if body is not None:
            options["data"] = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        async with self._session.request(method, self.address(path), headers=headers, **options) as response:
            text = await response.text()
            canary.check_text(text, f"the answer to {method} {path}")
            return response.status, json.loads(text) if text else None

    async def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded body of a 2xx answer; anything else fails the test."""
        status, answer = await self.call(method, path, body)
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def address(self, path: str) -> str:
        if path == "W" or path.startswith("W/"):
            path = f"/v1/workspaces/{self.workspace_id}" + path[1:]
        return self.server.url + path

    async def open(self, directory: Path, **fields: Any) -> str:
        """Open the workspace of a directory; paths that begin with `W` mean it from now on."""
        answer = await self.ok(
            "POST", "/v1/workspaces", {"path": str(directory), "client_id": self.client_id, **fields}
        )
        self.workspace_id = answer["id"]
        return self.workspace_id

    async def new_session(self, title: str = "") -> str:
        return str((await self.ok("POST", "W/sessions", {"title": title}))["id"])

    async def prompt(self, session_id: str, prompt: str, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await self.ok(
            "POST", f"W/agent?client_id={self.client_id}", {"session_id": session_id, "prompt": prompt, **fields}
        )
        return answer

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self.ok("GET", f"W/sessions/{session_id}/messages")
        return answer

    async def run(self, run_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = await self.ok("GET", f"W/runs/{run_id}")
        return answer

    async def run_over(self, run_id: str) -> dict[str, Any]:
        """The run once it is terminal (asked for again and again, for tests that have no stream)."""
        found: dict[str, Any] = {}

        async def is_over() -> bool:
            found.update(await self.run(run_id))
            return found["state"] in ("completed", "canceled", "failed", "interrupted")

        await until(is_over, f"run {run_id} is over")
        return found

    def stream(self, *, after: str | None = None, last_event_id: str | None = None, deltas: bool = False) -> "EventTap":
        return EventTap(self, after, last_event_id, deltas)


class Event(dict[str, Any]):
    """One event as it was on the wire: `kind`, `change`, `body`, `id` ("" when it has none), `by`."""

    @property
    def kind(self) -> str:
        return str(self["data"]["type"])

    @property
    def change(self) -> str:
        return str(self["data"]["payload"]["type"])

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = self["data"]["payload"]["payload"]
        return body

    @property
    def id(self) -> str:
        return str(self["id"])

    @property
    def seq(self) -> int:
        return int(self.id.partition(".")[2])

    @property
    def by(self) -> dict[str, Any]:
        return self["data"].get("by") or {}


class EventTap:
    """An open event stream. Everything that came is in `events`; `wait_for` awaits one that may have come already."""

    def __init__(self, api: Api, after: str | None, last_event_id: str | None, deltas: bool) -> None:
        self._api = api
        self._query = {"client_id": api.client_id, **({"after": after} if after is not None else {})}
        if deltas:
            self._query["deltas"] = "1"
        self._headers = {"Last-Event-ID": last_event_id} if last_event_id is not None else {}
        self.events: list[Event] = []
        self.comments: list[str] = []
        self.over = False
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._greeted = asyncio.Event()
        self.status = 0

    async def __aenter__(self) -> "EventTap":
        self._task = asyncio.create_task(self._read(), name="event tap")
        await asyncio.wait_for(self._greeted.wait(), WAIT_SECONDS)
        assert self.status == 200, f"the stream was answered {self.status}"
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.drop()

    async def drop(self) -> None:
        """Cut the connection, as a network does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self._api.token}", **self._headers}
        timeout = aiohttp.ClientTimeout(total=None)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(self._api.address("W/events"), params=self._query, headers=headers) as response,
            ):
                self.status = response.status
                async for block in _blocks(response):
                    self._take(block)
        except aiohttp.ClientError:
            pass  # the server was killed: the stream just ends
        finally:
            self.over = True
            self._greeted.set()
            self._changed.set()

    def _take(self, block: str) -> None:
        canary.note_text(block, "an event")
        lines = block.split("\n")  # not splitlines: text may hold characters that Python takes for line ends
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        self.comments += [line for line in lines if line.startswith(":")]
        if "data" in fields:
            self.events.append(Event(id=fields.get("id", ""), data=json.loads(fields["data"])))
            self._greeted.set()
        self._changed.set()

    @property
    def facts(self) -> list[Event]:
        return [event for event in self.events if event.id]

    async def wait_for(self, kind: str, matches: Callable[[Event], bool] = lambda event: True) -> Event:
        """The first event of this kind that matches, waiting for it if it has not come yet."""

        def found() -> Event | None:
            return next((event for event in self.events if event.kind == kind and matches(event)), None)

        event: Event = await self._until(found, f"an event {kind}")
        return event

    async def complete(self, run_id: str) -> Event:
        return await self.wait_for("run_complete", lambda event: event.body["run_id"] == run_id)

    async def ended(self) -> None:
        await self._until(lambda: self.over or None, "the end of the stream")

    async def _until(self, found: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while (result := found()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or (self.over and found() is None):
                kinds = [f"{e.kind}/{e.change}" for e in self.events]
                raise AssertionError(f"waited in vain for {what}; came: {kinds}")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue
        return result


async def _blocks(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    buffer = b""
    async for chunk in response.content.iter_any():
        buffer += chunk
        *blocks, buffer = buffer.split(b"\n\n")
        for block in blocks:
            yield block.decode()


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Look again and again until it is true; fail the test when it takes too long."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if await result if isinstance(result, Awaitable) else result:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain: {what}")
        await asyncio.sleep(0.01)


def openai_config(url: str, **sections: str) -> str:
    """A config whose model is an OpenAI-compatible server at `url`, such as a ModelServer."""
    extra = "\n".join(f"[{name}]\n{body}" for name, body in sections.items())
    return (
        'model = "fake/test-model"\n[providers.fake]\ntype = "openai"\n'
        f'base_url = "{url}"\napi_key = "{canary.KEY}"\n{extra}\n'
    )
