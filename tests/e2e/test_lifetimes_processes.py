"""Nothing outlives the server: no process a tool started, no guardian; and a closed workspace leaves nothing open."""

import os
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from conftest import Starter

from windlass.testing.model_server import ModelServer
from windlass.testing.processes import alive, descendants, marked, open_descriptors, threads
from windlass.testing.server_process import Api, ServerProcess, until

LIVES = 20  # of a workspace; what each of them leaves open is seen twenty times
Ending = Callable[[ServerProcess], Awaitable[object]]
COMMANDS = {
    "an ordinary child": "(exec -a {m}-child sleep 1000) & exec -a {m}-main sleep 1000",
    "one that ignores every polite signal": (
        "trap '' TERM HUP INT QUIT; (exec -a {m}-child sleep 1000) & exec -a {m}-main sleep 1000"
    ),
    "one that forks twice into a session of its own": (
        "trap '' TERM HUP; setsid bash -c '(setsid bash -c \"exec -a {m}-child sleep 1000\" &) ' & "
        "exec -a {m}-main sleep 1000"
    ),
}


@pytest.fixture
def marker() -> Iterator[str]:
    """A word no other process has; what still has it at the end is killed, so that a failure leaves nothing behind."""
    marker = f"marked-{uuid.uuid4().hex}"
    yield marker
    for pid in marked(marker):
        os.kill(pid, signal.SIGKILL)


async def start_tool(api: Api, model: ModelServer, command: str, marker: str) -> None:
    """Have the agent run the command, and return when both of its processes are there."""
    session = await api.new_session()
    await api.prompt(session, "Run it.")
    call = await model.next_call()
    await call.tool("bash", {"command": command.format(m=marker)})
    await call.end()

    def runs() -> bool:
        lines = [line for line in marked(marker).values() if line.startswith(marker)]
        return {line.split()[0] for line in lines} == {f"{marker}-child", f"{marker}-main"}

    await until(runs, "the tool's processes run")


async def stop(server: ServerProcess) -> None:
    assert await server.stop() == 0


async def kill(server: ServerProcess) -> None:
    await server.kill()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize("end", [stop, kill], ids=["stop", "kill -9"])
async def test_no_process_of_a_tool_outlives_the_server(
    start_server: Starter, directory: Path, model: ModelServer, marker: str, end: Ending, command: str
) -> None:
    """B36 I19: else what an agent started goes on without anyone who could see or stop it."""
    server = await start_server("--drain", "0.2", permissions='allow = ["bash"]')
    async with Api(server) as api:
        await api.open(directory)
        await start_tool(api, model, command, marker)
    family = descendants(server.pid)
    await end(server)
    if end is kill:
        await until(lambda: not marked(marker) and not alive(family), "everything the server had started is gone", 10)
    assert marked(marker) == {}
    assert alive(family) == set()


async def test_a_closed_workspace_leaves_no_descriptor_and_no_thread(
    start_server: Starter, tmp_path: Path, model: ModelServer, stack: AsyncExitStack
) -> None:
    """I19: else a server that stays for months runs out of descriptors."""
    server = await start_server(permissions='allow = ["bash"]')
    model.auto(_one_command_then_done)

    async def whole_life(directory: Path) -> None:
        os.mkdir(directory)
        async with Api(server) as api:
            await api.open(directory)
            async with api.stream(deltas=True) as tap:
                accepted = await api.prompt(await api.new_session(), "Run it.")
                await tap.complete(accepted["run_id"])
            await api.ok("DELETE", f"/v1/clients/{api.client_id}")

    await whole_life(tmp_path / "warm")  # the first run makes what is kept: a connection to the model, reading threads
    await whole_life(tmp_path / "warmer")
    onlooker = await stack.enter_async_context(Api(server))
    await onlooker.ok("GET", "/v1/version")
    descriptors, tasks = open_descriptors(server.pid), threads(server.pid)
    for number in range(LIVES):
        await whole_life(tmp_path / f"life-{number}")
    assert await onlooker.ok("GET", "/v1/workspaces") == []
    # One more reading thread, with its view of the database, is no leak: a server that was busy may have made one.
    await until(lambda: open_descriptors(server.pid) < descriptors + LIVES, "every descriptor is closed")
    assert threads(server.pid) < tasks + LIVES


def _one_command_then_done(request: dict[str, object]) -> list[dict[str, object]]:
    messages = request["messages"]
    assert isinstance(messages, list)
    if messages[-1]["role"] == "tool":
        return [{"say": "Done."}]
    return [{"tool": "bash", "input": {"command": "echo here"}}]
