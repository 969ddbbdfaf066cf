"""What a worker prints: all of it is read, and only so much of it goes to our log."""

import asyncio
import os

from windlass import limits
from windlass.fleet.pool.worker_output import WorkerOutput


async def test_a_flood_of_lines_is_read_and_only_a_few_are_passed_on() -> None:
    """A38: one worker that prints without end would hold up everyone's runs, and fill the disk with logs."""
    reading, writing = os.pipe()
    lines: list[str] = []
    output = WorkerOutput(reading, lines.append)
    try:
        for _ in range(40):
            await asyncio.to_thread(os.write, writing, b"x\n" * 2_000)
    finally:
        os.close(writing)
        output.close()
    assert 0 < len(lines) <= 2 * limits.WORKER_LINES_PER_SECOND + 2
    assert list(output.last) == ["x"] * limits.WORKER_LAST_LINES
