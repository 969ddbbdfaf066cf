"""A working day in a few seconds: sessions stream while others have long histories, loud tools and large searches."""

import asyncio
import time
from pathlib import Path

from bench import directive, load
from bench.child import Child
from bench.gaps import gap_file, longest
from bench.plan import Plan
from bench.rows import Row
from bench.world import World, world

_AIM_MS = 20.0
_HISTORIES = 5  # sessions with a long history, prompted at once
_PROMPTS = 8  # that a long history is made of
_FILES_PER_DIRECTORY = 500
_SEARCHES = 2
_ROUNDS = 3  # of all of it: the longest gap is looked for in seconds, not in one


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with world(scratch, module="bench.gap_server") as here, Child("bench.gap_alone") as alone:
        await _make_tree(here.project / "tree", plan.tree_files)
        histories = await here.new_sessions(_HISTORIES)
        for _ in range(_PROMPTS):
            filler = "x" * (plan.history_bytes // _PROMPTS)
            await _to_the_end(here, histories, f"{directive.stream(3, 0)} {filler}")
        await here.attach(1)
        await here.prompt_all(await here.new_sessions(plan.mix_sessions), load.paced(plan.rate))
        await asyncio.sleep(plan.warm_seconds)
        began = time.monotonic()
        await here.crowd.ask("reset")
        for _ in range(_ROUNDS):
            await _work(here, plan, histories)
        seconds = time.monotonic() - began
        report = await here.crowd.ask("report")
        late, computed = longest(gap_file(here.server.directory), began)
        bare = (await alone.ask("longest", since=began))["longest_ms"]
    return _rows(plan, late, computed, bare, report["p99_ms"], seconds)


async def _work(here: World, plan: Plan, histories: list[str]) -> None:
    """All of it at once, beside the sessions that stream."""
    tools = await here.new_sessions(_SEARCHES + _HISTORIES)
    search = directive.bash("grep -r needle tree")
    shout = directive.bash(f"yes bench | head -c {plan.output_bytes}")
    await asyncio.gather(
        _to_the_end(here, histories, directive.stream(20, 20)),
        _to_the_end(here, tools[:_SEARCHES], search),
        _to_the_end(here, tools[_SEARCHES:], shout),
    )


async def _to_the_end(here: World, sessions: list[str], prompt: str) -> None:
    for run in await here.prompt_all(sessions, prompt):
        over = await here.api.run_over(run)
        if over["state"] != "completed":
            raise RuntimeError(f"a run ended {over['state']}: {over.get('error')}")


async def _make_tree(root: Path, files: int) -> None:
    """Not in a thread: one that is still writing cannot be cleaned up after."""
    for number in range(files):
        if number % _FILES_PER_DIRECTORY == 0:
            await asyncio.sleep(0)
            directory = root / str(number // _FILES_PER_DIRECTORY)
            directory.mkdir(parents=True)
        line = "a needle" if number % 1000 == 0 else "hay"
        (directory / f"{number}.txt").write_text(f"{line} {number}\n" * 5)


def _rows(plan: Plan, late: float, computed: float, bare: float, p99_ms: float, seconds: float) -> list[Row]:
    what = f"{plan.mix_sessions} sessions stream, {plan.history_bytes // 1000} KB histories"
    what += f", {plan.output_bytes // 1000} KB outputs, grep over {plan.tree_files:,} files; {seconds:.0f} s"
    return [
        Row(name="longest gap of the loop, mixed work", value=late, unit="ms", bare=bare, aim=_AIM_MS, note=what),
        Row(name="longest that the loop computed, mixed work", value=computed, unit="ms", aim=_AIM_MS),
        Row(name="provider to client, mixed work, p99", value=p99_ms, unit="ms"),
    ]
