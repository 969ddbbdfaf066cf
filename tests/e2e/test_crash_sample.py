"""A few rounds of the crash suite, so that every run of the tests kills a working server a few times."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed_under_load() -> None:
    """A44 I1 I3 I7 I8 I9 I12 I13 B36: else a crash costs people what they were told is safe."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash", "--rounds", "3", "--seed", "20",
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 180)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode()
    assert "0 violations" in output.decode()
