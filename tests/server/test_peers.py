"""The Unix socket has no token, so the server looks at who connects: its own commands are not let in."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import uvloop

from windlass.guardian.handle import Guardian
from windlass.server.app import create_app
from windlass.server.door import Door
from windlass.server.listener import Listener
from windlass.server.peers import is_own_command
from windlass.server.services import Services
from windlass.server.tokens import TokenStore

ASK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(b"GET /v1/version HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
    print(connection.recv(4096).split(b"\\r\\n")[0].decode())
except ConnectionError:
    print("closed")  # the server did not even wait for the question
"""
# The same from a grandchild, whose parent has ended by then.
ORPHAN = f"""
import os, signal
if os.fork():
    signal.pause()
elif os.fork():
    os._exit(0)
os.setsid()
{ASK}
"""


@asynccontextmanager
async def listening(tmp_path: Path, guardian: Guardian) -> AsyncIterator[str]:
    tokens = TokenStore(tmp_path / "data")
    app = create_app(Services(None, tokens, *[None] * 4))  # type: ignore[arg-type]
    path = tmp_path / "private" / "windlass.sock"
    listener = Listener(
        f"unix:{path}",
        Door(app, tokens, trusted=True),
        is_unwelcome=lambda connection: is_own_command(connection, guardian.pid),
    )
    await listener.start()
    try:
        yield str(path)
    finally:
        await listener.stop(5)


@asynccontextmanager
async def a_guardian() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    try:
        yield guardian
    finally:
        await guardian.aclose()


async def said(guardian: Guardian, script: str, path: str) -> str:
    """The first thing that the script says."""
    process = await guardian.spawn([sys.executable, "-I", "-S", "-u", "-c", script, path], cwd="/", env={})
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(process.output, ready.set)
    try:
        await asyncio.wait_for(ready.wait(), 20)
        return os.read(process.output, 4096).decode().strip()
    finally:
        loop.remove_reader(process.output)
        os.close(process.output)
        process.kill()
        await process.wait()


async def story(tmp_path: Path, script: str) -> None:
    async with a_guardian() as guardian, listening(tmp_path, guardian) as path:
        assert await said(guardian, script, path) in ("HTTP/1.1 403 Forbidden", "closed")
        connector = aiohttp.UnixConnector(path)
        async with aiohttp.ClientSession(connector=connector) as session, session.get("http://x/v1/version") as answer:
            assert answer.status == 200


async def test_a_command_is_refused_and_the_user_is_not(tmp_path: Path) -> None:
    """A30: a command would allow itself everything, through the one door that asks for no token."""
    await story(tmp_path, ASK)


def test_it_is_so_on_uvloop_too(tmp_path: Path) -> None:
    """The server runs on uvloop, whose sockets are of another kind."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story(tmp_path, ASK))


async def test_a_command_whose_parents_are_gone_is_refused_too(tmp_path: Path) -> None:
    """A30: a double fork would make it a stranger."""
    await story(tmp_path, ORPHAN)


async def test_who_connected_and_left_is_taken_for_a_command(tmp_path: Path) -> None:
    """A30: a command could connect, leave the connection to its child and be no one's descendant any more."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-c", "import socket, sys; socket.socket(1).connect(sys.argv[1])", path
        )
        await process.wait()
        connection, _ = await asyncio.to_thread(door.accept)
        with connection:
            assert is_own_command(connection, guardian=2**22 + 1)


@pytest.mark.parametrize("guardian", [0, 2**22 + 1])
def test_others_are_let_in(guardian: int) -> None:
    """People would be locked out of their own server; also while there is no guardian."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not is_own_command(ours, guardian)
        assert is_own_command(ours, os.getppid())
