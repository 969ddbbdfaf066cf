"""A process of the bench: spoken to in lines of JSON, and gone as soon as nobody speaks to it any more."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import uvloop

ROOT = Path(__file__).parent.parent
_ANSWER_SECONDS = 60.0  # the longest errand is to connect 2,000 clients
_LINE_BYTES = 16 * 1024 * 1024
Answer = dict[str, Any]


class Child:
    """`python -m <module>` while entered. `ask` sends one command and returns the answer to it."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            limit=_LINE_BYTES,
        )
        self.port = (await self._line()).get("port", 0)
        return self

    async def ask(self, what: str, **arguments: Any) -> Answer:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps({"what": what, **arguments}).encode() + b"\n")
        return await self._line()

    async def _line(self) -> Answer:
        assert self._process is not None and self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), _ANSWER_SECONDS)
        if not line:
            raise RuntimeError(f"{self._module} ended")
        answer: Answer = json.loads(line)
        return answer

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 5.0)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


def obey(start: Callable[[], Awaitable[int]], act: Callable[[Answer], Awaitable[Answer]]) -> None:
    """The child's side: start, say the port, then act on each line until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us in its own order
    uvloop.run(_obey(start, act))


async def _obey(start: Callable[[], Awaitable[int]], act: Callable[[Answer], Awaitable[Answer]]) -> None:
    reader = asyncio.StreamReader(limit=_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _say({"port": await start()})
    while line := await reader.readline():
        _say(await act(json.loads(line)))


def _say(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def listen(protocol: Callable[[], asyncio.Protocol]) -> int:
    """Listen on a free loopback port; returns it."""
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, backlog=4096)
    _listening.append(server)
    return int(server.sockets[0].getsockname()[1])


_listening: list[asyncio.Server] = []  # kept: a server that nobody holds is collected
