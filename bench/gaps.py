"""How long an event loop is held up: a timer that should fire every few milliseconds writes down when it is late."""

import asyncio
import os
import time
from pathlib import Path

_TICK_SECONDS = 0.005
_WORTH_NOTING_SECONDS = 0.001


class Ticker:
    """Appends a line for each late tick: when, how many seconds late, and how long this thread computed meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._file = path.open("a")
        self._again()

    def _again(self) -> None:
        self._due = time.monotonic() + _TICK_SECONDS
        self._computed = time.thread_time()
        self._loop.call_later(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        late = time.monotonic() - self._due
        if late > _WORTH_NOTING_SECONDS:
            computed = time.thread_time() - self._computed
            self._file.write(f"{time.monotonic()} {late} {computed}\n")
            self._file.flush()
        self._again()


def gap_file(directory: str | Path) -> Path:
    return Path(directory) / "gaps.txt"


def longest(path: Path, since: float) -> tuple[float, float]:
    """Milliseconds of the longest gap since then, and of the longest time the thread computed in one."""
    gaps = [tuple(map(float, line.split())) for line in path.read_text().splitlines()]
    recent = [(late, min(late + _TICK_SECONDS, computed)) for when, late, computed in gaps if when > since]
    if not recent:
        return 0.0, 0.0
    return max(late for late, _ in recent) * 1000, max(computed for _, computed in recent) * 1000


def own_file() -> Path:
    return gap_file(os.environ["BENCH_DIRECTORY"])
