"""The whole suite again and again, each time in another order: `python -m tests.shuffle --runs 30`.

A test that fails in one order only is a flake. The seed that gives that order is printed.
"""

import argparse
import random
import subprocess
import sys
import time

RUN_SECONDS = 900  # a run that takes longer hangs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    seeds = [random.SystemRandom().randrange(1_000_000) for _ in range(options.runs)]
    failed = [seed for number, seed in enumerate(seeds, 1) if not passes(number, seed, options.pytest)]
    print(
        f"{len(seeds) - len(failed)} of {len(seeds)} orders passed.", *(f"Failed: --shuffle {seed}" for seed in failed)
    )
    return 1 if failed else 0


def passes(number: int, seed: int, arguments: list[str]) -> bool:
    began = time.monotonic()
    argv = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "--shuffle", str(seed), *arguments]
    try:
        run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_SECONDS)
        output, code = run.stdout, run.returncode
    except subprocess.TimeoutExpired as error:
        output, code = f"{error}\n", 1
    if code:
        print(output)
    verdict = "failed" if code else "passed"
    print(f"run {number}: --shuffle {seed} {verdict} after {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
