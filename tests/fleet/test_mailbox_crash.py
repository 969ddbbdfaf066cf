"""A few hundred messages of the mailbox's crash suite, so that every run of the tests kills writers and readers."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def run(*arguments: str) -> str:
    """Run a module of the tests in a process of its own (it forks); what it said, if it found nothing wrong."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 150)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_no_message_and_no_session_is_lost_when_writers_and_readers_are_killed() -> None:
    """B70 B71 I23 I24: else a crash costs agents what others told them."""
    said = await run("tests.crash.mailbox", "--messages", "300", "--seed", "20", "--mine", "0.005")
    assert "0 violations" in said


async def test_every_operation_can_be_killed_after_each_of_its_system_calls() -> None:
    """B70 B71 I23 I24: a place that random kills seldom reach would be found by a user."""
    said = await run("tests.fleet.kill_points")
    points = [int(line.split(" ")[-2]) for line in said.splitlines()]
    assert len(points) == 9 and min(points) >= 4, said
