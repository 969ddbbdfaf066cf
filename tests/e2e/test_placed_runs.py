"""Runs in worker processes: one that dies costs its run and nothing else, and a warm one is used again."""

import os
import signal
from pathlib import Path

import pytest
from conftest import Starter
from shared_world import story

from windlass.testing.model_server import ModelServer
from windlass.testing.processes import alive, descendants, marked
from windlass.testing.server_process import Api, ServerProcess, until


@pytest.fixture
def placement() -> str:
    return "process"


def workers(server: ServerProcess) -> set[int]:
    """The worker processes of this server."""
    return descendants(server.pid) & set(marked("--spec-stdin"))


async def test_a_run_whose_worker_is_killed_ends_interrupted_and_the_queue_goes_on(
    api: Api, server: ServerProcess, model: ModelServer
) -> None:
    """B11 B58 I22: a crash of one agent would block its session for ever, or take the server with it."""
    session_id = await api.new_session()
    first = (await api.prompt(session_id, "first"))["run_id"]
    second = (await api.prompt(session_id, "second"))["run_id"]
    await (await model.next_call()).say("Half an ans")
    killed = workers(server)
    assert len(killed) == 1
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert (await api.run_over(first))["state"] == "interrupted"
    call = await model.next_call()
    await call.say("Whole.")
    await call.end()
    assert (await api.run_over(second))["state"] == "completed"
    assert story(await api.messages(session_id))[-1] == "assistant: Whole. [end_turn]"
    assert alive(killed) == set()


async def test_a_killed_worker_takes_its_commands_with_it(
    start_server: Starter, directory: Path, model: ModelServer
) -> None:
    """B36 I22: what a worker's tool started would go on without anyone who knows of it."""
    server = await start_server(permissions='allow = ["bash"]')
    async with Api(server) as api:
        await api.open(directory)
        run_id = (await api.prompt(await api.new_session(), "go"))["run_id"]
        call = await model.next_call()
        await call.tool("bash", {"command": "(setsid sleep 1234 &) ; touch started; exec sleep 1234"})
        await call.end()
        await until((directory / "started").exists, "the command runs")
        below = descendants(server.pid)
        for pid in workers(server):
            os.kill(pid, signal.SIGKILL)
        assert (await api.run_over(run_id))["state"] == "interrupted"
        left = below & set(marked("sleep 1234"))
        await until(lambda: not alive(left), "the commands are gone", 5)


async def test_a_warm_worker_serves_the_next_run_also_of_another_workspace(
    api: Api, server: ServerProcess, model: ModelServer, tmp_path: Path
) -> None:
    """B60: a process for each prompt would cost a fifth of a second each time."""
    model.auto(lambda request: [{"say": "Hello."}])
    await api.run_over((await api.prompt(await api.new_session(), "one"))["run_id"])
    warm = workers(server)
    await api.run_over((await api.prompt(await api.new_session(), "two"))["run_id"])
    (tmp_path / "elsewhere").mkdir()
    await api.open(tmp_path / "elsewhere")
    await api.run_over((await api.prompt(await api.new_session(), "three"))["run_id"])
    assert workers(server) == warm and len(warm) == 1


async def test_stopping_the_server_ends_its_workers(api: Api, server: ServerProcess, model: ModelServer) -> None:
    """B35 B36: a warm worker that stays would wait for nobody."""
    model.auto(lambda request: [{"say": "Hello."}])
    await api.run_over((await api.prompt(await api.new_session(), "one"))["run_id"])
    below = descendants(server.pid)
    assert await server.stop() == 0
    assert alive(below) == set()
