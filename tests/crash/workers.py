"""`python -m tests.crash.workers --rounds 50`: nothing is left of a server that was killed, however its workers hid it.

Each round a server has a worker that runs a command which forks twice into a session of its own and ignores every
polite signal, an agent of that run in another worker, and a warm one that nobody uses. The server is killed at a random
moment, and five seconds later nothing of it may be alive (B36, I22).
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from windlass.testing.model_server import ModelServer
from windlass.testing.processes import alive, descendants, marked
from windlass.testing.server_process import Api, ServerProcess, openai_config, until

BOUND_SECONDS = 5.0
_HIDDEN = (
    "trap '' TERM HUP INT QUIT; setsid bash -c '(setsid bash -c \"exec -a {m}-child sleep 1000\" &)' & "
    "exec -a {m}-main sleep 1000"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.workers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"workers: {options.rounds} rounds, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="windlass-workers-") as scratch:
        took, left = asyncio.run(run_rounds(options.rounds, seed, Path(scratch)))
    print(f"  gone after {max(took):.2f} s at most, {sum(took) / len(took):.2f} s on average")
    for line in left:
        print(f"VIOLATION {line}")
    print(f"{len(left)} processes left, seed {seed}")
    return 1 if left else 0


async def run_rounds(rounds: int, seed: int, root: Path) -> tuple[list[float], list[str]]:
    """How long each server's processes took to be gone, and what was left after the bound."""
    dice, took, left = random.Random(seed), [], []
    (root / "project").mkdir()
    for number in range(rounds):
        seconds, alive_still = await _one_life(root, f"hidden-{os.getpid()}-{seed}-{number}", dice)
        took.append(seconds)
        left += alive_still
    return took, left


async def _one_life(root: Path, marker: str, dice: random.Random) -> tuple[float, list[str]]:
    async with ModelServer() as model:
        model.auto(lambda request: _reply(request, marker))
        config = openai_config(model.url, runs='placement = "process"', permissions='allow = ["bash", "agent"]')
        server = await ServerProcess(root / "server", config=config).start()
        try:
            async with Api(server) as api:
                await api.open(root / "project")
                await api.run_over((await api.prompt(await api.new_session(), "warm"))["run_id"])
                await api.prompt(await api.new_session(), "start")
                await until(lambda: len(_commands(marker)) == 4, "both commands run")
                await asyncio.sleep(dice.uniform(0, 0.3))  # not to wait for anything: the moment of the kill is random
        finally:
            family = descendants(server.pid)
            await server.kill()
    began = time.monotonic()
    with contextlib.suppress(AssertionError):
        await until(lambda: not _there(family, marker), "nothing of it is alive", BOUND_SECONDS)
    return time.monotonic() - began, [f"{marker}: process {pid}" for pid in _there(family, marker)]


def _there(family: set[int], marker: str) -> set[int]:
    return alive(family) | set(marked(marker))


def _commands(marker: str) -> list[str]:
    return [line for line in marked(marker).values() if line.startswith(marker)]


def _reply(request: dict[str, object], marker: str) -> list[dict[str, object]]:
    """The run starts an agent and then a command of its own; the agent starts a command. Each hides what it starts."""
    messages = request["messages"]
    assert isinstance(messages, list)
    prompt, last = messages[1]["content"], messages[-1]
    if prompt == "warm":
        return [{"say": "Warm."}]
    if prompt == "start" and last["role"] == "user":
        return [{"tool": "agent", "input": {"action": "start", "prompt": "child"}}]
    name = "agent" if prompt == "child" else "root"
    return [{"tool": "bash", "input": {"command": _HIDDEN.format(m=f"{marker}-{name}")}}]


if __name__ == "__main__":
    sys.exit(main())
