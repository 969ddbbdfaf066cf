"""Whether a server that is offered twice what it can carry still answers those who ask how it is, or say stop."""

import asyncio
import time
from pathlib import Path

from bench import directive, load
from bench.plan import Plan
from bench.rows import Row, spread
from bench.wire import Wire, wire
from bench.world import World, world

_AIM_MS = 50.0
_TIMES_TOO_MUCH = 2
_PAUSE_SECONDS = 0.02
# Of one row of questions, and of the last of them. The bare loop reads whatever is there before it looks at anything
# else: on a fast machine it needs seconds for each answer, and two hundred would take the better part of an hour.
_ASKING_SECONDS = 20.0
_TOKENS = 10**7  # more than is sent before the end of it


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    capacity = await _capacity(plan, scratch)
    rate = int(capacity * _TIMES_TOO_MUCH / plan.busy_sessions) + 1
    prompt = directive.stream(_TOKENS, rate)
    async with world(scratch) as here:
        await here.attach(1)
        runs = await here.prompt_all(await here.new_sessions(plan.busy_sessions), prompt)
        busy = await load.window(here.crowd, here.cpu, plan)
        async with wire(here.port, here.server.token) as first, wire(here.port, here.server.token) as second:
            health, cancels = await asyncio.gather(_ask(first, plan), _cancel(here, second, runs, prompt, plan))
    bare = await _bare(plan, prompt)
    carried = f"{busy.tokens / busy.seconds:,.0f} tokens/s carried, {rate * plan.busy_sessions:,} offered"
    few = (_shortage("bare: ", bare, plan.probes), _shortage("", health, plan.probes))
    note = "; ".join(words for words in (carried, *few) if words)
    return [
        *_rows("/v1/health at twice the load", health, bare, note=note),
        *_rows("cancel answered at twice the load", cancels, bare, note=_shortage("", cancels, plan.probes // 2)),
    ]


def _shortage(who: str, took: list[float], wanted: int) -> str:
    """That a figure rests on fewer answers than it should."""
    return "" if len(took) == wanted else f"{who}{len(took)} of {wanted} questions in {_ASKING_SECONDS:.0f} s"


async def _capacity(plan: Plan, scratch: Path) -> float:
    """Tokens a second that come through when the provider never has to be waited for."""
    async with world(scratch) as here:
        await here.attach(1)
        await here.prompt_all(await here.new_sessions(plan.busy_sessions), directive.stream(_TOKENS, 0))
        steady = await load.window(here.crowd, here.cpu, plan)
        return steady.tokens / steady.seconds


async def _ask(requests: Wire, plan: Plan) -> list[float]:
    ends = time.monotonic() + _ASKING_SECONDS
    took: list[float] = []
    while len(took) < plan.probes and time.monotonic() < ends:
        took.append(await _answer(requests, "GET", "/v1/health", expect=200))
        await asyncio.sleep(_PAUSE_SECONDS)
    return took


async def _answer(requests: Wire, method: str, path: str, *, expect: int) -> float:
    """How many milliseconds the answer took; one that was waited for in vain took at least as long as that."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_ASKING_SECONDS):
            return (await requests.timed(method, path, expect=expect))[1]
    except TimeoutError:
        return (time.monotonic() - began) * 1000


async def _cancel(here: World, requests: Wire, runs: list[str], prompt: str, plan: Plan) -> list[float]:
    """Cancel one run after another, each replaced by a new one so that the load stays."""
    base = f"/v1/workspaces/{here.api.workspace_id}"
    query = f"?client_id={here.api.client_id}"
    ends = time.monotonic() + _ASKING_SECONDS
    took: list[float] = []
    while len(took) < plan.probes // 2 and time.monotonic() < ends:
        run = runs.pop(0)
        took.append(await _answer(requests, "POST", f"{base}/runs/{run}/cancel{query}", expect=202))
        session = await here.api.new_session()
        runs.append((await here.api.prompt(session, prompt))["run_id"])
        await asyncio.sleep(_PAUSE_SECONDS)
    return took


async def _bare(plan: Plan, prompt: str) -> list[float]:
    """Health of the bare loop, which is offered the same."""
    async with load.bare_loop(1) as (loop, _, provider):
        await loop.ask("stream", port=provider.port, streams=plan.busy_sessions, prompt=prompt)
        await asyncio.sleep(plan.warm_seconds)
        async with wire(loop.port) as requests:
            return await _ask(requests, plan)


def _rows(name: str, ours: list[float], bare: list[float], note: str = "") -> list[Row]:
    (ours_50, ours_99), (bare_50, bare_99) = spread(ours), spread(bare)
    return [
        Row(name=f"{name}, p50", value=ours_50, unit="ms", bare=bare_50, note=note),
        Row(name=f"{name}, p99", value=ours_99, unit="ms", bare=bare_99, aim=_AIM_MS),
    ]
