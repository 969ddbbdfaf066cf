"""`connect`: from nothing to a client in one line, and a goodbye at its end."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from fake_windlass import TOKEN, FakeWindlass, refusal

from windlass.client import ServerNotFound, connect
from windlass.client.discovery import is_alive
from windlass.testing.server_process import until


@pytest.fixture
def named(server: FakeWindlass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWindlass:
    """The server, named by the environment as scripts do it."""
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    monkeypatch.setenv("WINDLASS_URL", server.url)
    monkeypatch.setenv("WINDLASS_TOKEN_FILE", str(tmp_path / "token"))
    return server


async def test_the_server_of_the_environment_is_found_and_left_politely(named: FakeWindlass) -> None:
    """B34: a server that follows its clients would go on waiting for a program that has ended."""
    async with connect() as client:
        workspace = await client.open("/somewhere")
        assert workspace.id == "ws_1"
    assert named.requests[-1] == ("DELETE", f"/v1/clients/{client.client_id}?client_id={client.client_id}")


async def test_an_error_in_the_work_is_what_is_raised_and_a_refused_goodbye_is_not(named: FakeWindlass) -> None:
    """A finished program would fail because the server was gone a moment before it."""
    with pytest.raises(ZeroDivisionError):
        async with connect() as client:
            named.refuse(f"/clients/{client.client_id}", refusal(409, "It has left already."))
            raise ZeroDivisionError


async def test_without_a_server_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first look at the SDK would end in a traceback about a missing file."""
    monkeypatch.delenv("WINDLASS_URL", raising=False)
    with pytest.raises(ServerNotFound, match="windlass serve"):
        async with connect(data_dir=tmp_path):
            raise AssertionError("connected to nothing")


async def test_a_server_is_started_where_none_is_running(tmp_path: Path) -> None:
    """B32: a script on a fresh machine would need a second terminal. In a process of its own, as scripts are."""
    program = (
        "import asyncio\n"
        "from windlass.client import connect, find_server\n"
        "async def main():\n"
        "    for _ in range(2):\n"
        "        async with connect(start=True) as client:\n"
        "            await client.version()\n"
        "            print(find_server().pid)\n"
        "asyncio.run(main())\n"
    )
    hidden = ("WINDLASS", "XDG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    first, second = (int(line) for line in output.split())
    try:
        assert first == second
    finally:
        os.kill(first, signal.SIGTERM)
        await until(lambda: not is_alive(first), "the server has left")
