"""How long a cold start takes, until connections are accepted."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from bench.plan import Plan
from bench.rows import Row, percentile
from bench.world import world

_AIM_MS = 600.0
LIBRARIES = "import uvloop, aiohttp, litestar, uvicorn"


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    ours: list[float] = []
    again: list[float] = []
    bare: list[float] = []
    for number in range(plan.starts):
        bare.append(await _import_libraries())
        for kept in (ours, again):  # the second start finds the journal of the first
            async with world(scratch, name=f"start-{number}") as here:
                kept.append(here.server.start_seconds * 1000)
    alone = _median(bare)
    note = "bare: the import of its libraries"
    return [
        Row(name="cold start to ready", value=_median(ours), unit="ms", bare=alone, aim=_AIM_MS, note=note),
        Row(name="start with a journal that is there", value=_median(again), unit="ms", bare=alone, aim=_AIM_MS),
    ]


async def _import_libraries() -> float:
    began = time.monotonic()
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", LIBRARIES], check=True)
    return (time.monotonic() - began) * 1000


def _median(values: list[float]) -> float:
    return percentile(sorted(values), 0.5)
