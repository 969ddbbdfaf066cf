"""Calls that block an event loop raise: tried with code that claims to be ours."""

import ast
import asyncio
import os
import socket
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.leaks import command
from windlass.testing import blocking
from windlass.testing.blocking import BlockingCall
from windlass.testing.blocking_allowed import ALLOWED
from windlass.testing.server_process import ServerProcess
from windlass.testing.watched_program import SIGN

PACKAGE = Path(windlass.__file__).parent
CALLS = {
    "a sleep": "time.sleep(0)",
    "opening a file": "open('/dev/null').close()",
    "reading a file": "Path('/dev/null').read_text()",
    "opening a descriptor": "os.close(os.open('/dev/null', os.O_RDONLY))",
    "waiting for the disk": "os.fsync(1)",
    "listing a directory": "os.listdir('/')",
    "a database": "sqlite3.connect(':memory:')",
    "a statement": "database.execute('SELECT 1')",
    "starting a process": "subprocess.run(['true'])",
    "waiting for a process": "child.wait()",
    "waiting for a thread": "threading.Thread(target=print).join()",
    "a blocking socket": "left.recv(1)",
    "looking up a host": "socket.getaddrinfo('localhost', 80)",
}


def ours(body: str, **names: Any) -> dict[str, Any]:
    """Functions that do `body`, compiled as if they stood in the engine."""
    source = f"def plain():\n    {body}\nasync def awaited():\n    {body}\nasync def deeper():\n    plain()\n"
    modules = {"os": os, "socket": socket, "sqlite3": sqlite3, "subprocess": subprocess, "threading": threading}
    space: dict[str, Any] = {**modules, "time": time, "Path": Path, **names}
    exec(compile(source, str(PACKAGE / "engine" / "made_up.py"), "exec"), space)
    return space


@pytest.fixture(autouse=True)
def forgiven(blocks_no_loop: None) -> Any:
    """What is found here is found on purpose."""
    yield
    blocking.found.clear()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", ["awaited", "deeper"])
async def test_our_code_may_not_block_its_loop(call: str, way: str) -> None:
    """Else one slow disk, host or process stops every run and every stream of a server."""
    database = sqlite3.connect(":memory:")
    child = subprocess.Popen(["true"])  # noqa: ASYNC220  # on purpose
    left, right = socket.socketpair()
    with left, right, pytest.raises(BlockingCall, match=r"blocks the event loop: .*engine/made_up\.py:\d+ in \w+"):
        await ours(CALLS[call], database=database, child=child, left=left)[way]()
    database.close()
    child.wait()
    assert len(blocking.found) == 1


async def test_a_callback_of_ours_may_not_block_either() -> None:
    """Timers and readers run on the loop as well, and nobody awaits them: the raise alone would be lost in a log."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    asyncio.get_running_loop().call_soon(ours("time.sleep(0)")["plain"])
    await asyncio.sleep(0.001)
    assert "time.sleep" in blocking.found[0]


@pytest.mark.parametrize("call", ["a sleep", "reading a file", "starting a process"])
async def test_in_a_thread_it_may_block(call: str) -> None:
    """Else the way out would be closed too."""
    await asyncio.to_thread(ours(CALLS[call])["plain"])


async def test_a_test_may_block_its_own_loop() -> None:
    """Else no test could look at a file, or make tokens as the command line does."""
    ours("time.sleep(0)")["plain"]()


async def test_a_socket_that_does_not_block_is_no_blocking_call() -> None:
    """Else asyncio itself could not be used."""
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right, pytest.raises(BlockingIOError):
        await ours("left.recv(1)", left=left)["awaited"]()


def qualified_names(node: ast.AST, prefix: str = "") -> set[str]:
    names: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {prefix + child.name} | qualified_names(child, f"{prefix}{child.name}.")
    return names


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed_exists(name: str) -> None:
    """An exception that outlives its function would be taken for a rule."""
    path, _, function = name.partition(":")
    assert function in qualified_names(ast.parse((PACKAGE / path).read_text()))


async def test_the_servers_of_tests_are_watched_and_a_find_fails_the_test(tmp_path: Path) -> None:
    """Else the code that matters most, a whole server's, would be the only one that is not looked at."""
    server = await ServerProcess(tmp_path).start()
    assert "windlass.testing.watched_server" in command(server.pid)
    with server.log_file.open("a") as log:
        log.write(f"{SIGN}open 'x' blocks the event loop\n")
    with pytest.raises(AssertionError, match="open 'x' blocks"):
        await server.stop()
