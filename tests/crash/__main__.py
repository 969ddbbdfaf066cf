"""`python -m tests.crash --rounds 50 --seed 7`: run the crash suite, print what happened, exit 1 on a violation."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .check import violations
from .found import Found
from .rounds import run_rounds
from .told import Told

_SHOWN = 40  # violations printed; one cause has many


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="the same seed rolls the same dice, not the same clock")
    parser.add_argument("--placement", choices=("local", "process"), default="local", help="where runs are executed")
    parser.add_argument("--keep", type=Path, default=None, help="a new directory to work in and to keep")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"crash suite: {options.rounds} rounds, seed {seed}, runs placed {options.placement}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="windlass-crash-") as scratch:
        root = options.keep or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        told, found = asyncio.run(run_rounds(options.rounds, seed, root, options.placement))
        problems = violations(told, found)  # while the files the tools made are still there
    print(summary(told, found, time.monotonic() - began))
    for problem in problems[:_SHOWN]:
        print(f"VIOLATION {problem}")
    print(f"{len(problems)} violations, seed {seed}")
    return 1 if problems else 0


def summary(told: Told, found: dict[str, Found], seconds: float) -> str:
    prompts = told.prompts.values()
    states = Counter(run["state"] for there in found.values() for run in there.runs)
    cancels = [cancel for cancel in told.cancels if cancel.status]
    rows = {
        "seconds": f"{seconds:.0f}",
        "kills": str(told.counts["kills"]),
        "  of them": f"{told.counts['killed on an answer']} right after an answer, "
        f"{told.counts['killed while starting']} while starting, {told.counts['killed while stopping']} while stopping",
        "start to ready": f"{max(told.start_seconds):.2f} s at most, {_mean(told.start_seconds):.2f} s on average",
        "prompts sent": f"{len(told.prompts)}, {told.counts['prompts sent again']} sent again",
        "  acknowledged": str(sum(prompt.accepted for prompt in prompts)),
        "  refused": str(sum(prompt.refused for prompt in prompts)),
        "runs found": ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
        "model calls": str(told.counts["model calls"]),
        "cancels answered": f"{len(cancels)} of {len(told.cancels)}",
        "permission answers": f"{sum(a.resolved is True for a in told.answers)} resolved, "
        f"{sum(a.resolved is False for a in told.answers)} not, {sum(a.resolved is None for a in told.answers)} untold",
        "facts in the logs": str(sum(len(there.facts) for there in found.values())),
        "facts received": f"{sum(len(watched.facts) for watched in told.watched)} by {len(told.watched)} clients "
        f"over {sum(watched.connections for watched in told.watched)} connections",
    }
    return "\n".join(f"  {name:<20} {value}" for name, value in rows.items())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    sys.exit(main())
