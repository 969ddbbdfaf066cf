"""A loop with a ticker and nothing else to do: what is late here is late because of the machine."""

import asyncio
import tempfile
from pathlib import Path

from bench.child import Answer, obey
from bench.gaps import Ticker, longest

_scratch = tempfile.TemporaryDirectory(prefix="windlass-bench-")
_file = Path(_scratch.name) / "gaps.txt"


async def _start() -> int:
    Ticker(asyncio.get_running_loop(), _file)
    return 0


async def _act(command: Answer) -> Answer:
    return {"longest_ms": longest(_file, command["since"])[0]}


if __name__ == "__main__":
    obey(_start, _act)
