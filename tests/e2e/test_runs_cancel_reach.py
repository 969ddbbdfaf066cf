"""A cancel reaches everything the run has started: the connection to the model, and every process of its tools."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from shared_world import Client, World

from windlass.testing.server_process import EventTap, until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


def processes(marker: str) -> list[int]:
    """The processes with this word in their command line."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if marker in _read(path)]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it ended while we looked


async def _run_command(world: World, command: str) -> tuple[Client, EventTap, str, str]:
    """A run whose model asked for this command; returns when the command has made the file `started`."""
    api, tap = await world.attached(yolo=True)
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "run it"))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": command})
    await call.end()
    await until((world.directory / "started").exists, "the command runs")
    return api, tap, session_id, run_id


async def test_cancel_drops_the_connection_to_a_model_that_has_not_answered(world: World) -> None:
    """If it failed, a provider would go on thinking, and charging, for an answer nobody wants. B18"""
    api = await world.client()
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    await api.cancel(session_id)
    await call.closed()


async def test_cancel_drops_the_connection_to_a_model_in_the_middle_of_its_answer(world: World) -> None:
    """If it failed, a long answer would be generated and paid to its end after it was stopped. B18"""
    api = await world.client()
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    await call.say("A very long")
    await api.cancel(session_id)
    await call.closed()


async def test_cancel_ends_the_command_and_the_children_it_waits_for(world: World) -> None:
    """If it failed, a build or a server that was stopped would go on using the machine. B18 B05"""
    marker = f"marker-{uuid.uuid4()}"
    command = f"bash -c 'touch started; sleep 1000; :' {marker} & wait; : {marker}"
    api, tap, session_id, run_id = await _run_command(world, command)
    running = processes(marker)
    await api.cancel(session_id)
    await tap.complete(run_id)
    await until(lambda: not processes(marker), "every process of the command is gone")
    assert len(running) >= 2


async def test_cancel_ends_a_child_that_forked_twice_into_a_session_of_its_own_and_ignores_signals(
    world: World,
) -> None:
    """If it failed, a daemon that a command started would outlive the run that nobody wants any more. B18 A34"""
    marker = f"marker-{uuid.uuid4()}"
    stubborn = "trap '' TERM HUP INT; touch started; while :; do sleep 0.2; done"
    command = f'(setsid bash -c "{stubborn}" {marker} </dev/null >/dev/null 2>&1 &); sleep 1000'
    api, tap, session_id, run_id = await _run_command(world, command)
    daemons = [pid for pid in processes(marker) if _leads_a_session(pid)]
    await api.cancel(session_id)
    await tap.complete(run_id)
    await until(lambda: not processes(marker), "the daemon is gone")
    assert daemons, "the child did not leave its parent, so this test would have shown nothing"


def _leads_a_session(pid: int) -> bool:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return len(fields) > 3 and int(fields[3]) == pid


async def test_a_cancelled_run_calls_neither_the_model_nor_a_tool_again(world: World) -> None:
    """If it failed, a run would go on acting after its stop was confirmed. B18 I5"""
    api, tap, session_id, run_id = await _run_command(world, "touch started; sleep 1000")
    await api.cancel(session_id)
    await tap.complete(run_id)
    asked: list[Any] = [request["messages"][-1]["content"] for request in world.requests]
    assert asked == ["run it"]
