"""A person's own command, wherever the server places its agents: it runs in the server's care, and ends with it."""

import asyncio
from pathlib import Path

from windlass.testing.server_process import Api, ServerProcess, until


async def test_a_command_that_a_crash_cut_off_ends_interrupted_and_its_processes_are_gone(
    server: ServerProcess, api: Api, directory: Path
) -> None:
    """It would go on without anyone, and its run would never end. B36 I3"""
    session = await api.new_session()
    command = "while true; do date +%N > alive; sleep 0.02; done"
    asked = asyncio.create_task(api.call("POST", f"W/agent/sessions/{session}/shell", {"command": command}))
    await until((directory / "alive").exists, "the command runs")
    await server.kill()
    await asyncio.wait({asked})
    assert asked.exception() is not None, "whoever waits for it hears that the server is gone"
    await server.start()
    await api.open(directory)
    (run,) = await api.ok("GET", "W/runs")
    assert (run["state"], run["prompt"]) == ("interrupted", f"! {command}")

    async def is_quiet() -> bool:
        before = (directory / "alive").read_text()
        await asyncio.sleep(0.1)  # nothing announces that something does not happen
        return (directory / "alive").read_text() == before

    await until(is_quiet, "the command's processes are gone")
