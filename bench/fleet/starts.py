"""How long a run in a process waits for its first event: when a worker must be started for it, and when one is warm."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from bench import directive
from bench.child import Child
from bench.fleet import bare_client
from bench.fleet.owner import Owner, guarded, pool
from bench.plan import Plan
from bench.rows import Row, percentile, spread
from windlass.fleet.pool.pool import Pool
from windlass.fleet.pool.pooled import PooledExecutor
from windlass.wire.worker import AgentSpec, ModelSpec, ProviderSpec, WorkerSpec

_ECHO = WorkerSpec(secret="", executor="echo")
_TOKENS = 3
_WARM_RUNS = 3  # the first ones start the worker and load what only a run needs
# What a worker loads that is not ours, and without `rich`, as it does. It says when: its end is not its start.
_LIBRARIES = "import sys; sys.modules['rich'] = None; import uvloop, msgspec, structlog, httptools, click; print(1)"
_NOTHING = "print(1)"


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with Child("bench.provider") as provider, guarded() as guardian:
        agent = _agent(provider.port)
        async with pool(guardian, uses=1) as workers:
            cold = await _cold(workers, agent, plan.spawns, scratch)
        async with pool(guardian, uses=plan.samples + _WARM_RUNS) as workers:
            warm = await _warm(workers, agent, plan.samples, scratch)
    return [*cold, *warm]


async def _cold(workers: Pool, agent: WorkerSpec, spawns: int, scratch: Path) -> list[Row]:
    """Every run waits for the start of its worker."""
    python, libraries, echo, tokens = _series(4)
    for _ in range(spawns):  # in turn: a busy second must not be one kind's alone
        python.append(await asyncio.to_thread(_start_python, _NOTHING))
        libraries.append(await asyncio.to_thread(_start_python, _LIBRARIES))
        echo.append(await _first_event(workers))
        tokens.append(await _first_token(workers, agent, scratch))
    _check_starts(workers, 2 * spawns)
    note = f"bare: Python that loads its libraries; Python alone: {percentile(sorted(python), 0.5):.0f} ms"
    return [
        *_rows("run to first event, a new worker", echo, libraries, note),
        *_rows("run to first token, a new worker with an agent", tokens, libraries),
    ]


async def _warm(workers: Pool, agent: WorkerSpec, samples: int, scratch: Path) -> list[Row]:
    """Every run finds the worker of the one before."""
    connections, echo, tokens = _series(3)
    async with Child("bench.fleet.bare_socket") as bare:
        for _ in range(samples + _WARM_RUNS):
            connections.append(await bare_client.first_message(bare.port))
            echo.append(await _first_event(workers))
            tokens.append(await _first_token(workers, agent, scratch))
    _check_starts(workers, 2)
    connections, echo, tokens = connections[_WARM_RUNS:], echo[_WARM_RUNS:], tokens[_WARM_RUNS:]
    note = "bare: a connection of the WebSocket library and its first message"
    return [
        *_rows("run to first event, a warm worker", echo, connections, note),
        *_rows("run to first token, a warm worker with an agent", tokens, connections),
    ]


def _series(count: int) -> list[list[float]]:
    """Milliseconds, one list for each thing that is timed."""
    return [[] for _ in range(count)]


def _agent(port: int) -> WorkerSpec:
    provider = ProviderSpec(
        name="bench",
        type="openai",
        base_url=f"http://127.0.0.1:{port}/v1",
        key="not-a-real-key",
        models=(ModelSpec(id="bench", context_window=100_000),),
    )
    return WorkerSpec(secret="", executor="agent", agent=AgentSpec(provider))


def _start_python(code: str) -> float:
    """Milliseconds until it has said something."""
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-P", "-u", "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError(f"this ended without a word: {code}")
        return (time.monotonic() - began) * 1000


async def _first_event(workers: Pool) -> float:
    owner = Owner("hello")
    await owner.run(PooledExecutor(workers, _ECHO))
    return (owner.first_at - owner.began_at) * 1000


async def _first_token(workers: Pool, agent: WorkerSpec, scratch: Path) -> float:
    owner = Owner(directive.stream(_TOKENS, 0), str(scratch), "bench/bench")
    await owner.run(PooledExecutor(workers, agent))
    return (owner.first_text_at - owner.began_at) * 1000


def _check_starts(workers: Pool, expected: int) -> None:
    """A warm one among the new ones, or a new one among the warm ones, would make the figures another thing's."""
    started = workers.statistics().started
    if started != expected:
        raise RuntimeError(f"{started} workers were started instead of {expected}")


def _rows(name: str, ours: list[float], bare: list[float], note: str = "") -> list[Row]:
    (ours_50, ours_99), (bare_50, bare_99) = spread(ours), spread(bare)
    return [
        Row(name=f"{name}, p50", value=ours_50, unit="ms", bare=bare_50, note=note),
        Row(name=f"{name}, p99", value=ours_99, unit="ms", bare=bare_99),
    ]
