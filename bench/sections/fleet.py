"""What it costs to execute a run in a process of its own: until its first event, on the link, and for each token."""

from pathlib import Path

from bench.fleet import link, placement, starts
from bench.plan import Plan
from bench.rows import Row


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    return [*await starts.measure(plan, scratch), *await link.measure(plan), *await placement.measure(plan, scratch)]
