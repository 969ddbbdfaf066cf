"""What is resident: of an idle server, of each thing it holds, and of clients that have left."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench import directive, load, proc
from bench.plan import Plan
from bench.rows import Row
from bench.sections.start import LIBRARIES
from bench.world import World, world

_MB = 1024 * 1024
_KB = 1024
_LOUD_BYTES = 4_000_000  # written while clients are stalled: far more than the kernel holds for one that reads nothing
_TOKEN_BYTES = 1_000
_SMALL_MESSAGE_BYTES, _LARGE_MESSAGE_BYTES = 10_000, 1_000_000
_ROUNDS = 3  # of visitors: what the first leaves behind is the allocator's, what each leaves is ours
_QUIET_SECONDS = 20.0


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with _libraries_alone() as bare_idle, world(scratch) as here:
        rows = [Row(name="idle server", value=here.memory() / _MB, unit="MB", bare=bare_idle / _MB, aim=70.0)]
        (session,) = await here.new_sessions(1)
        (run,) = await here.prompt_all([session], directive.stream(10, 0))
        await here.api.run_over(run)
        rows.append(
            Row(name="after its first run", value=here.memory() / _MB, unit="MB", bare=bare_idle / _MB, aim=70.0)
        )
        rows.append(await _idle_sessions(here, plan))
        rows.append(await _idle_streams(here, plan))
    async with world(scratch) as here:
        small = await _stalled_streams(here, plan.stalled_streams, _SMALL_MESSAGE_BYTES)
    async with world(scratch) as here:
        large = await _stalled_streams(here, plan.stalled_streams // 10 or 1, _LARGE_MESSAGE_BYTES)
    rows += _stalled_rows(plan, small, large)
    async with world(scratch) as here:
        rows += await _visitors(here, plan)
    return rows


@contextlib.asynccontextmanager
async def _libraries_alone() -> AsyncIterator[int]:
    """The resident bytes of a process that has loaded the libraries and does nothing."""
    code = f"{LIBRARIES}, sys; print(1, flush=True); sys.stdin.read()"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None
    try:
        await process.stdout.readline()
        yield proc.memory_bytes(process.pid)
    finally:
        process.stdin.close()
        await process.wait()


async def _idle_sessions(here: World, plan: Plan) -> Row:
    before = here.memory()
    await here.new_sessions(plan.idle_sessions)
    each = (here.memory() - before) / plan.idle_sessions
    return Row(name=f"per idle session, {plan.idle_sessions:,} of them", value=each / _KB, unit="KB")


async def _idle_streams(here: World, plan: Plan) -> Row:
    before = here.memory()
    await here.attach(plan.idle_streams)
    each = (here.memory() - before) / plan.idle_streams
    await _leave(here)
    async with load.bare_loop(0) as (loop, crowd, _):
        before = proc.memory_bytes(loop.pid)
        paths = ["/events"] * plan.idle_streams
        await crowd.ask("connect", port=loop.port, token="", stalled=False, paths=paths)
        bare = (proc.memory_bytes(loop.pid) - before) / plan.idle_streams
    return Row(name=f"per stream, {plan.idle_streams:,} of them", value=each / _KB, unit="KB", bare=bare / _KB)


async def _stalled_streams(here: World, streams: int, message_bytes: int) -> float:
    """KB for each of them, after others wrote messages of that size."""
    await _write(here, message_bytes)  # what the text itself takes is there before, in the tail and in the allocator
    before = here.memory()
    await here.attach(streams, stalled=True)
    await _write(here, message_bytes)
    each = (here.memory() - before) / streams
    await _leave(here)
    return each / _KB


async def _write(here: World, message_bytes: int) -> None:
    """Let sessions write messages of that size, _LOUD_BYTES together."""
    sessions = await here.new_sessions(_LOUD_BYTES // message_bytes)
    prompt = directive.stream(message_bytes // _TOKEN_BYTES, 1_000, _TOKEN_BYTES)
    for run in await here.prompt_all(sessions, prompt):
        await here.api.run_over(run)


def _stalled_rows(plan: Plan, small: float, large: float) -> list[Row]:
    note = f"while {_LOUD_BYTES // 1_000_000} MB of text were written, in messages of {_SMALL_MESSAGE_BYTES // 1000} kB"
    return [
        Row(name=f"per stalled stream, {plan.stalled_streams:,} of them", value=small, unit="KB", aim=128.0, note=note),
        Row(name="per stalled stream, messages of 1 MB", value=large, unit="KB", note="a message is never cut"),
    ]


async def _visitors(here: World, plan: Plan) -> list[Row]:
    """Clients come, see one session write, and go; again and again."""
    after, sockets = [], []
    for _ in range(_ROUNDS):
        await here.attach(plan.visitors)
        (session,) = await here.new_sessions(1)
        (run,) = await here.prompt_all([session], directive.stream(20, 20))
        await here.api.run_over(run)
        await _leave(here)
        after.append(here.memory())
        sockets.append(proc.open_sockets(here.server.pid))
    grown = (after[-1] - after[0]) / (plan.visitors * (_ROUNDS - 1))
    left = sockets[-1] - sockets[0]
    who = f"{plan.visitors:,} clients came and went, {_ROUNDS} times"
    return [
        Row(name="per client that left", value=grown / _KB, unit="KB", aim=1.0, note=f"{who}; after the first time"),
        Row(name="sockets that clients left behind", value=float(max(0, left)), unit="", aim=0.0),
    ]


async def _leave(here: World) -> None:
    """All clients hang up; wait until the server has noticed, and their grace is over."""
    await here.crowd.ask("leave")
    deadline = time.monotonic() + _QUIET_SECONDS
    seen = -1
    while time.monotonic() < deadline:
        now = proc.open_sockets(here.server.pid)
        if now == seen:
            break
        seen = now
        await asyncio.sleep(0.5)
    await asyncio.sleep(1.5)  # the detach grace of the server under test, and some
