"""What a token costs more when its run is in a process of its own: the same load on two servers."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from bench import load, proc
from bench.plan import Plan
from bench.rows import Row
from bench.wire import tap
from bench.world import World, world


@dataclass(frozen=True, slots=True)
class _Placed:
    """One window of one server. `steady` is about it and everything it started: its guardian, and the workers."""

    steady: load.Steady
    server_us_per_token: float  # of that, the server's process alone


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with world(scratch, placement="local") as one, world(scratch, placement="process") as other:
        await _stream(one, plan)
        await _stream(other, plan)
        if len(proc.descendants(other.server.pid)) < plan.placed_sessions:
            raise RuntimeError(f"there are not {plan.placed_sessions} workers: the runs are somewhere else")
        # At the same time: whatever else the machine does, it does to both.
        local, process = await asyncio.gather(_window(one, plan), _window(other, plan))
    return _rows(plan.placed_sessions, local, process)


async def _stream(here: World, plan: Plan) -> None:
    """Returns when every session streams: a worker that still starts would be counted as the cost of tokens."""
    await here.attach(1)
    sessions = await here.new_sessions(plan.placed_sessions)
    async with tap(here) as events:
        await here.prompt_all(sessions, load.paced(plan.rate))
        for session in sessions:
            await events.until(b'"message_delta"', session.encode())


async def _window(here: World, plan: Plan) -> _Placed:
    below = proc.descendants(here.server.pid)
    alone: list[float] = []

    def cpu() -> float:
        alone.append(here.cpu())
        return alone[-1] + sum(proc.cpu_seconds(pid) for pid in below)

    steady = await load.window(here.crowd, cpu, plan)
    return _Placed(steady, (alone[-1] - alone[0]) / steady.tokens * 1e6)


def _rows(sessions: int, local: _Placed, process: _Placed) -> list[Row]:
    ours, bare = process.steady, local.steady
    where = f"{sessions} runs in processes"
    everything = "server, guardian and workers"
    return [
        Row(
            name="CPU per token added by placing a run in a process",
            value=ours.us_per_token - bare.us_per_token,
            unit="us",
            bare=bare.us_per_token,
            note=f"{everything}; bare: the whole token with the run in the server's process",
        ),
        Row(
            name=f"CPU per token, {where}",
            value=ours.us_per_token,
            unit="us",
            bare=bare.us_per_token,
            note=f"{everything}, {ours.cpu_share:.0%} of a core; bare: with the runs in the server's process",
        ),
        Row(
            name="of that, the server alone",
            value=process.server_us_per_token,
            unit="us",
            bare=local.server_us_per_token,
        ),
        Row(name=f"provider to client, {where}, p50", value=ours.p50_ms, unit="ms", bare=bare.p50_ms),
        Row(name=f"provider to client, {where}, p99", value=ours.p99_ms, unit="ms", bare=bare.p99_ms),
    ]
