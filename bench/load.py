"""A steady load and what it costs: tokens from the provider, through a process, to clients that count them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from bench import directive, proc
from bench.child import Child
from bench.plan import Plan
from bench.world import world
from windlass.testing.server_process import until

_STREAM_SECONDS = 120  # longer than any window: a stream that ended would make the load lighter


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """One window of a steady load."""

    cpu_seconds: float
    seconds: float
    tokens: int  # delivered, over all clients
    events: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    @property
    def us_per_token(self) -> float:
        return self.cpu_seconds / max(1, self.tokens) * 1e6

    @property
    def us_per_event(self) -> float:
        return self.cpu_seconds / max(1, self.events) * 1e6

    @property
    def cpu_share(self) -> float:
        return self.cpu_seconds / self.seconds


async def window(crowd: Child, cpu: Callable[[], float], plan: Plan) -> Steady:
    """Wait for the first token, let it run warm, then measure one window. Idle CPU is not subtracted."""

    async def flows() -> bool:
        return bool((await crowd.ask("report"))["tokens"])

    await until(flows, "a token comes through")
    await asyncio.sleep(plan.warm_seconds)
    await crowd.ask("reset")
    before = cpu()
    await asyncio.sleep(plan.window_seconds)
    spent = cpu() - before
    report = await crowd.ask("report")
    if not report["tokens"]:
        raise RuntimeError("no token came through: there is nothing to measure")
    names = ("seconds", "tokens", "events", "p50_ms", "p99_ms", "max_ms")
    return Steady(cpu_seconds=spent, **{name: report[name] for name in names})


def paced(rate: int) -> str:
    return directive.stream(rate * _STREAM_SECONDS, rate)


async def ours(scratch: Path, plan: Plan, *, sessions: int, clients: int = 1) -> Steady:
    """Through a real server: `sessions` runs in one workspace, watched by `clients`."""
    async with world(scratch) as here:
        await here.attach(clients)
        await here.prompt_all(await here.new_sessions(sessions), paced(plan.rate))
        return await window(here.crowd, here.cpu, plan)


async def bare(plan: Plan, *, sessions: int, clients: int = 1) -> Steady:
    """Through the bare loop: as many streams, as many clients."""
    async with bare_loop(clients) as (loop, crowd, provider):
        await loop.ask("stream", port=provider.port, streams=sessions, prompt=paced(plan.rate))
        return await window(crowd, lambda: proc.cpu_seconds(loop.pid), plan)


@contextlib.asynccontextmanager
async def bare_loop(clients: int) -> AsyncIterator[tuple[Child, Child, Child]]:
    """The bare loop with clients attached, the crowd and a provider."""
    async with Child("bench.provider") as provider, Child("bench.crowd") as crowd, Child("bench.bare") as loop:
        await crowd.ask("connect", port=loop.port, token="", stalled=False, paths=["/events"] * clients)
        yield loop, crowd, provider
