"""A server that follows its clients (`--exit-when-idle`): when it leaves, and when it must not."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from conftest import Starter

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess

CREATE_GRACE, DETACH_GRACE, LINGER = 1.0, 0.3, 0.5
FOLLOWS = ("--exit-when-idle", "--create-grace", "1", "--detach-grace", "0.3", "--linger", "0.5")
LONGER = 1.5 * (CREATE_GRACE + DETACH_GRACE + LINGER)  # than everything after which it could leave by mistake


async def stays(server: ServerProcess, seconds: float = LONGER) -> None:
    """Fail if the server ends within this time."""
    with pytest.raises(AssertionError, match="in vain"):
        await server.ended(seconds)


async def test_it_leaves_after_the_last_client_left_and_the_linger(start_server: Starter, directory: Path) -> None:
    """B32: else every editor window that was ever opened leaves a server behind."""
    server = await start_server(*FOLLOWS)
    async with Api(server) as api:
        await api.open(directory)
        async with api.stream():
            pass
        left = time.monotonic()
        assert await server.ended() == 0
        assert time.monotonic() - left >= DETACH_GRACE + LINGER


async def test_it_stays_while_one_client_is_attached(
    start_server: Starter, directory: Path, stack: AsyncExitStack
) -> None:
    """B32: else the last window loses its server when another one closes."""
    server = await start_server(*FOLLOWS)
    leaver, stayer = await stack.enter_async_context(Api(server)), await stack.enter_async_context(Api(server))
    await leaver.open(directory)
    await stayer.open(directory)
    async with stayer.stream() as tap:
        await leaver.ok("DELETE", f"/v1/clients/{leaver.client_id}")
        await stays(server)
        assert not tap.over


async def test_it_stays_between_a_create_and_the_first_stream(start_server: Starter, directory: Path) -> None:
    """B32: else a client that is just starting finds the server gone that it was told to use."""
    server = await start_server("--exit-when-idle", "--create-grace", "30", "--detach-grace", "0", "--linger", "0.1")
    async with Api(server) as api:
        await api.open(directory)
        await stays(server, 1.5)
        async with api.stream():
            pass


async def test_it_stays_while_a_run_is_in_progress_and_leaves_after_it(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B32 B33: else closing the window kills the work; or, the work done, the server stays for ever."""
    server = await start_server(*FOLLOWS)
    async with Api(server) as api:
        await api.open(directory)
        await api.prompt(await api.new_session(), "Work on.")
        call = await model.next_call()
        await api.ok("DELETE", f"/v1/clients/{api.client_id}")
        await stays(server)
        await call.say("Done.")
        await call.end()
        assert await server.ended() == 0


async def test_it_leaves_when_nobody_ever_joins(start_server: Starter) -> None:
    """B32: else a server whose starter died before connecting stays for ever."""
    server = await start_server(*FOLLOWS)
    ready = server.log_file.stat().st_mtime  # its welcome is the last thing it writes before it is ready
    assert await server.ended() == 0
    assert time.time() - ready >= CREATE_GRACE + LINGER - 0.1  # the clock of the file system is coarse


async def test_the_linger_counts_from_the_last_client_not_from_an_earlier_idle_time(
    start_server: Starter, directory: Path
) -> None:
    """B32: else a client that reconnects a moment after leaving finds the server gone although it was to linger."""
    server = await start_server("--exit-when-idle", "--create-grace", "0.5", "--linger", "2.5")
    for _ in range(2):
        async with Api(server) as api:
            with pytest.raises(AssertionError, match="in vain"):
                await server.ended(1.2)  # into the linger that began when the server was last idle
            await api.open(directory)
            await api.ok("DELETE", f"/v1/clients/{api.client_id}")
            left = time.monotonic()
    assert await server.ended() == 0
    assert time.monotonic() - left >= 2.5


async def test_it_removes_its_address_when_it_leaves(start_server: Starter) -> None:
    """B32 I19: else clients keep finding a server that is not there."""
    server = await start_server(*FOLLOWS)
    assert (server.data_dir / "server.json").exists()
    await server.ended()
    assert not (server.data_dir / "server.json").exists()


@pytest.mark.parametrize("command", ["shutdown", "shutdown_if_idle"])
async def test_an_idle_server_leaves_when_asked(start_server: Starter, command: str) -> None:
    """B32 R37: else an installer cannot replace a server that nobody uses."""
    server = await start_server("--exit-when-idle", "--linger", "60")
    async with Api(server) as api:
        assert (await api.call("POST", "/v1/control", {"command": command}))[0] == 200
    assert await server.ended(10) == 0


@pytest.mark.parametrize("command", ["shutdown", "shutdown_if_idle"])
async def test_a_server_in_use_does_not_leave_when_asked(start_server: Starter, directory: Path, command: str) -> None:
    """B32 R37: else one client can end the server under another."""
    server = await start_server("--exit-when-idle", "--linger", "60")
    async with Api(server) as api:
        await api.open(directory)
        status, answer = await api.call("POST", "/v1/control", {"command": command})
        assert status == 409
        assert answer["message"]
        async with api.stream() as tap:
            await api.new_session("goes on")
            await tap.wait_for("session")


async def test_a_create_that_races_the_decision_to_leave_never_lands_on_a_leaving_server(
    start_server: Starter, directory: Path, stack: AsyncExitStack
) -> None:
    """I17 R35 R36: else a client is given a workspace on a server that is already on its way out."""
    server = await start_server("--exit-when-idle", "--linger", "60")
    clients = [await stack.enter_async_context(Api(server)) for _ in range(6)]
    for client in clients:
        await client.call("GET", "/v1/health")  # so that all have a connection and the race is in the server

    async def create(client: Api) -> int:
        body = {"path": str(directory), "client_id": client.client_id}
        try:
            return (await client.call("POST", "/v1/workspaces", body))[0]
        except aiohttp.ClientError:
            return 503  # gone before it could say so

    async def leave() -> int:
        return (await clients[0].call("POST", "/v1/control", {"command": "shutdown"}))[0]

    *before, left, after = await asyncio.gather(*map(create, clients[1:4]), leave(), create(clients[4]))
    created = [*before, after]
    if left == 200:
        assert created == [503] * 4
        assert await server.ended(10) == 0
    else:
        assert left == 409
        assert created == [200] * 4
