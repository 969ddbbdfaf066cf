"""`python -m tests.sim`: how many seeds it takes to miss each safeguard, and which rare branches seeds reach.

    python -m tests.sim                               every ablation, then 2,000 seeds of the real code
    python -m tests.sim --ablation "answer twice"     one of them
    python -m tests.sim --seeds 300                   fewer seeds, for both

Leaves with 1 when an ablation was not found, a rare branch was never reached, or the real code violates an invariant.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from tests.sim.ablations import ABLATIONS
from tests.sim.hunt import Found, hunt
from windlass.testing.branches import IMPORTANT
from windlass.testing.sim import Report, simulate_slice

_SLICE = 50


class _Options(NamedTuple):
    seeds: int
    jobs: int
    ablation: str


def main() -> int:
    options = _options()
    names = [options.ablation] if options.ablation else list(ABLATIONS)
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(zip(names, _told(pool.map(hunt, names, [options.seeds] * len(names))), strict=True))
        print(_table(found), flush=True)
        if options.ablation:
            return 0 if all(found.values()) else 1
        slices = [range(first, min(first + _SLICE, options.seeds)) for first in range(0, options.seeds, _SLICE)]
        reports = list(pool.map(simulate_slice, slices))
    print(_branches(reports))
    missed = [name for name in names if found[name] is None]
    zero = [branch for branch in IMPORTANT if not _counted(reports)[branch]]
    failures = [failure for report in reports for failure in report.failures]
    for failure in failures:
        print(f"\n{failure}")
    print(f"\n{len(names)} ablations, not found: {', '.join(missed) or 'none'}")
    print(f"{options.seeds} seeds of the real code, {len(failures)} failed; never reached: {', '.join(zero) or 'none'}")
    return 1 if missed or zero or failures else 0


def _options() -> _Options:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2_000, help="the most to try for an ablation (default: 2000)")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2, help="processes (default: 2)")
    parser.add_argument("--ablation", choices=sorted(ABLATIONS), default="", metavar="NAME", help="only this one")
    options = parser.parse_args()
    return _Options(options.seeds, options.jobs, options.ablation)


def _told(results: Iterator[Found | None]) -> Iterator[Found | None]:
    """Progress, on standard error: the whole table takes minutes."""
    for number, found in enumerate(results, 1):
        print(f"{number} {'not found' if found is None else f'seed {found.seed}'}", file=sys.stderr, flush=True)
        yield found


def _table(found: dict[str, Found | None]) -> str:
    lines = ["| ablation | what is wrong without the safeguard | noticed by | seeds |", "|---|---|---|---|"]
    for name, result in found.items():
        by, seeds = ("nobody", "not found") if result is None else (", ".join(result.invariants), str(result.seed + 1))
        lines.append(f"| {name} | {ABLATIONS[name].harm} | {by} | {seeds} |")
    return "\n".join(lines)


def _counted(reports: list[Report]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for report in reports:
        counted.update(report.branches)
    return counted


def _branches(reports: list[Report]) -> str:
    counted = _counted(reports)
    lines = ["", "| rare branch | times |", "|---|---|"]
    return "\n".join([*lines, *(f"| {branch} | {counted[branch]} |" for branch in IMPORTANT)])


if __name__ == "__main__":
    sys.exit(main())
