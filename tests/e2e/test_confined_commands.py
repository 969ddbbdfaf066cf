"""A30: what a command of the real server can reach of the server itself, wherever the run is executed: nothing."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config
from windlass.tools.confinement import landlock_version

pytestmark = pytest.mark.skipif(landlock_version() < 6, reason="this kernel's Landlock cannot confine a command wholly")
CANARY = "canary-77b0c2"
Start = Callable[[str, str], Awaitable[ServerProcess]]
ASK_SOCKET = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(b"GET /v1/version HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
print(connection.recv(4096).decode())
"""


@pytest.fixture
async def start(tmp_path: Path, model: ModelServer, stack: AsyncExitStack) -> Start:
    async def start(placement: str, sandbox: str) -> ServerProcess:
        config = openai_config(
            model.url,
            permissions='allow = ["bash"]',
            runs=f'placement = "{placement}"',
            bash=f'sandbox = "{sandbox}"',
        )
        unix = f"unix:{tmp_path / 'private' / 'windlass.sock'}"
        server = ServerProcess(tmp_path / "server", "--listen", unix, config=f"# {CANARY}\n{config}")
        await server.start({"SOME_API_KEY": CANARY, "HOME": str(tmp_path / "home")})
        stack.push_async_callback(server.stop)
        return server

    return start


async def output_of(api: Api, model: ModelServer, command: str) -> dict[str, Any]:
    session = await api.new_session()
    accepted = await api.prompt(session, "Run it.")
    call = await model.next_call()
    await call.tool("bash", {"command": command})
    await call.end()
    call = await model.next_call()
    await call.say("Done.")
    await call.end()
    await api.run_over(accepted["run_id"])
    messages = await api.messages(session)
    results = [part["data"] for message in messages for part in message["parts"] if part["type"] == "tool_result"]
    assert len(results) == 1
    return dict(results[0])


async def reached(server: ServerProcess, api: Api, model: ModelServer, tmp_path: Path) -> tuple[set[str], str]:
    """What of the server a command could reach, and all it said."""
    data, port = server.data_dir, server.url.rpartition(":")[2]
    ask = tmp_path / "ask.py"
    ask.write_text(ASK_SOCKET)
    attempts = {
        "token": f"cat {data}/token",
        "tokens": f"cat {data}/tokens.json",
        "journal": f"grep -c . {data}/journal.db",
        "address": f"cat {data}/server.json",
        "ready file": f"cat {server.directory}/ready.json",
        "config": f"cat {server.config_file}",
        "default config": f"mkdir -p {tmp_path}/home/.config/windlass",
        "environment": f"cat /proc/{server.pid}/environ",
        "port": f"exec 3<>/dev/tcp/127.0.0.1/{port}",
        "process": f"kill -0 {server.pid}",
        "socket": f"python3 {ask} {tmp_path}/private/windlass.sock | grep 200",
    }
    lines = [f'( {attempt} ) >/dev/null 2>&1 && echo "REACHED: {what}"' for what, attempt in attempts.items()]
    command = "\n".join([*lines, "env", "echo made > here; git init -q . && echo worked"])
    content = (await output_of(api, model, command))["content"]
    assert content.endswith("worked\n[exit code 0]")
    return {line.removeprefix("REACHED: ") for line in content.split("\n") if line.startswith("REACHED: ")}, content


@pytest.mark.parametrize("placement", ["local", "process"])
async def test_a_command_cannot_reach_its_own_server(
    start: Start, placement: str, tmp_path: Path, model: ModelServer, stack: AsyncExitStack
) -> None:
    """A30 A33 A34 A39: it would allow itself what it likes, with the user's own token."""
    (tmp_path / "project").mkdir()
    server = await start(placement, "require")
    api = await stack.enter_async_context(Api(server))
    await api.open(tmp_path / "project")
    found, content = await reached(server, api, model, tmp_path)
    assert (found, CANARY in content) == (set(), False)
    assert (tmp_path / "project" / "here").read_text() == "made\n"


async def test_an_unconfined_command_reaches_all_of_it_but_the_socket(
    start: Start, tmp_path: Path, model: ModelServer, stack: AsyncExitStack
) -> None:
    """The test above would show nothing if these ways led nowhere. The socket does not need the kernel's help."""
    (tmp_path / "project").mkdir()
    server = await start("local", "off")
    api = await stack.enter_async_context(Api(server))
    await api.open(tmp_path / "project")
    found, _ = await reached(server, api, model, tmp_path)
    others = {"ready file", "config", "default config", "environment", "port", "process"}
    assert found == {"token", "tokens", "journal", "address"} | others
