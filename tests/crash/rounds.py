"""Start the server, let the crowd work, kill it at a random moment; as many times as asked, on one data directory."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable
from functools import partial
from pathlib import Path

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess, openai_config, until

from .crowd import Crowd
from .found import Found, damage, find, processes
from .model import Model
from .told import Told

_RULES = 'allow = ["ls", "bash"]\nask = ["bash:touch *"]'
_END_SECONDS = 60.0  # for what was accepted to be over after the last crash


async def run_rounds(rounds: int, seed: int, root: Path, placement: str = "local") -> tuple[Told, dict[str, Found]]:
    """The whole suite but its comparison: what clients were told, and what is there."""
    told, dice = Told(), random.Random(seed)
    marker = f"crash-suite-{seed}-{os.getpid()}"
    async with ModelServer() as model:
        model.auto(Model(told, marker).reply)
        config = openai_config(model.url, permissions=_RULES, runs=f'placement = "{placement}"')
        server = ServerProcess(root / "server", "--drain", "0.5", config=config)
        crowds = []
        for name in ("a", "b"):
            (root / name).mkdir()
            crowds.append(Crowd(name, server, root / name, told, dice))
        try:
            for _ in range(rounds):
                await _one_life(server, crowds, told, dice)
                await _nothing_is_left(told, marker)
            found = await _settle(server, crowds, told)
            await _nothing_is_left(told, marker)
        finally:
            for crowd in crowds:
                await crowd.aclose()
            await server.stop()
    return told, found


async def _one_life(server: ServerProcess, crowds: list[Crowd], told: Told, dice: random.Random) -> None:
    if dice.random() < 0.15 and told.prompts:
        await _killed_while_starting(server, told, dice)
        return
    await _start(server, told)
    if dice.random() < 0.5:
        # The moment right after an answer is where something told too early is lost.
        told.strike = partial(_strike, server.pid, told)
        told.answers_to_go = dice.randint(1, 15)
    working = [asyncio.create_task(crowd.work()) for crowd in crowds]
    await asyncio.wait(working, timeout=dice.uniform(0.05, 1.5), return_when=asyncio.FIRST_EXCEPTION)
    if dice.random() < 0.15:
        told.counts["killed while stopping"] += 1
        os.kill(server.pid, signal.SIGTERM)
        await asyncio.sleep(dice.uniform(0.0, 0.6))
    told.counts["kills"] += 1
    told.answers_to_go = 0
    await server.kill()
    done, _ = await asyncio.wait(working, timeout=20)
    assert len(done) == len(working), "the crowd did not notice that the server is gone"
    for task in done:
        task.result()


def _strike(pid: int, told: Told) -> None:
    told.counts["killed on an answer"] += 1
    os.kill(pid, signal.SIGKILL)


async def _killed_while_starting(server: ServerProcess, told: Told, dice: random.Random) -> None:
    told.counts["kills"] += 1
    told.counts["killed while starting"] += 1
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(dice.uniform(0.3, 1.0))
    await server.kill()
    await asyncio.wait({starting})
    error = starting.exception()
    assert error is None or "ended at its start" in str(error), error


async def _start(server: ServerProcess, told: Told) -> None:
    began = time.monotonic()
    await server.start()
    told.start_seconds.append(time.monotonic() - began)


async def _settle(server: ServerProcess, crowds: list[Crowd], told: Told) -> dict[str, Found]:
    """One last life without a crash, until everything is over; what is there then."""
    await _start(server, told)
    settling = [asyncio.create_task(crowd.settle()) for crowd in crowds]
    found = {}
    try:
        for crowd in crowds:
            found[crowd.name] = await _found(crowd)
    finally:
        for task in settling:
            task.cancel()
        await asyncio.wait(settling)
    if await server.stop() != 0:
        told.problems.append(f"B35: the server did not stop cleanly:\n{server.log()[-2000:]}")
    told.problems += damage(server.data_dir / "journal.db")
    return found


async def _found(crowd: Crowd) -> Found:
    async def all_over() -> bool:
        answered = [prompt for prompt in crowd.told.prompts.values() if prompt.workspace == crowd.name]
        if any(len(prompt.answers) < prompt.times_sent and not prompt.accepted for prompt in answered):
            return False
        status, agent = await crowd.api.call("GET", "W/agent")
        return status == 200 and not agent["is_busy"]

    def all_received() -> bool:
        return all(watcher.position >= len(found.facts) for watcher in crowd.watchers)

    await _hope(crowd.told, "I3", until(all_over, "every run is over", _END_SECONDS))
    found = await find(crowd.api)
    await _hope(crowd.told, "I13", until(all_received, "every stream is at the end"))
    return found


async def _hope(told: Told, number: str, wait: Awaitable[None]) -> None:
    """What does not come is a violation like any other; the comparison says more about it."""
    try:
        await wait
    except AssertionError as problem:
        told.problems.append(f"{number}: {problem}")


async def _nothing_is_left(told: Told, marker: str) -> None:
    """No process a tool had started is there a little after the kill (B36)."""
    await _hope(told, "B36", until(lambda: not processes(marker), "no process of a tool is left", 10))
