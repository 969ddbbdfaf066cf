"""Two servers that start at once, a server that stops answering, and a person who presses Ctrl-C twice."""

import asyncio
import contextlib
import os
import re
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from pathlib import Path

from conftest import Starter

from windlass.testing.forked_program import ForkedProgram, fork
from windlass.testing.model_server import ModelServer
from windlass.testing.processes import stand_still
from windlass.testing.server_process import Api, ServerProcess, until


async def test_of_servers_that_start_at_the_same_moment_exactly_one_serves(tmp_path: Path) -> None:
    """R45 I18: else two servers write one log, or each sees the other and none of them stays."""
    servers = [ServerProcess(tmp_path / f"server {number}") for number in range(4)]
    for server in servers:
        server.data_dir = tmp_path / "data"
    started = await asyncio.gather(*(server.start() for server in servers), return_exceptions=True)
    try:
        ready = [server for server in started if isinstance(server, ServerProcess)]
        refused = [str(server) for server in started if isinstance(server, AssertionError)]
        assert (len(ready), len(refused)) == (1, 3)
        # "unknown" to one that came before the holder of the lock had said who it is (tests/journal/test_lock.py).
        told = re.compile(rf"\(process ({ready[0].pid}|unknown)\) already uses")
        assert all(told.search(refusal) for refusal in refused), refused
        async with Api(ready[0]) as api:
            await api.ok("GET", "/v1/version")
    finally:
        for server in servers:
            await server.stop()


async def test_a_person_can_leave_a_server_that_no_longer_answers(server: ServerProcess, directory: Path) -> None:
    """R42: else a terminal hangs in its goodbye until somebody kills it."""
    async with attached(server, directory) as program, stopped(server):
        assert program.stdin is not None
        began = time.monotonic()
        program.stdin.close()  # Ctrl-D
        await asyncio.wait_for(program.wait(), 20)
        assert time.monotonic() - began < 10


@contextlib.asynccontextmanager
async def attached(server: ServerProcess, directory: Path) -> AsyncIterator[ForkedProgram]:
    """`windlass attach` in a process of its own, once it listens."""
    assert server.stem is not None
    argv = ["windlass", "attach", str(directory), "--data-dir", str(server.data_dir)]
    program = await fork(server.stem, argv, dict(os.environ), stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL)
    try:
        async with Api(server) as onlooker:
            await onlooker.open(directory)

            async def listens() -> bool:
                sessions = await onlooker.ok("GET", "W/sessions")
                return any(session["attached_clients"] for session in sessions)

            await until(listens, "somebody looks at a session")
        yield program
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


@contextlib.asynccontextmanager
async def stopped(server: ServerProcess) -> AsyncIterator[None]:
    """Its sockets accept, and nothing is ever answered."""
    await stand_still(server.pid)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


async def test_a_second_ctrl_c_ends_the_wait_for_runs_and_their_ends_are_stored(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B35: else a person in a hurry kills the server, and the run's end is made up by the next start."""
    server = await start_server("--drain", "600")
    async with Api(server) as api:
        await api.open(directory)
        accepted = await api.prompt(await api.new_session(), "Never finish.")
        await model.next_call()
        os.kill(server.pid, signal.SIGINT)
        await until(lambda: "again: stop now" in server.log(), "it says what a second one does")
        os.kill(server.pid, signal.SIGINT)
        assert await server.ended() == 0
    await server.start()
    async with Api(server) as api:
        await api.open(directory)
        run = await api.run(accepted["run_id"])
        assert (run["state"], "The server stopped before the run was over" in run["error"]) == ("interrupted", True)
