"""`python -m windlass.testing.sim --seeds N`: simulate many seeds; a seed that fails is told, and can be replayed.

    python -m windlass.testing.sim --seeds 2000 --jobs 2     many seeds, and how often they reached the rare branches
    python -m windlass.testing.sim --seed 1234               one seed, with its whole history

Leaves with 1 when a seed failed.
"""

import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

import click
import msgspec

from windlass.testing.simulation import Outcome, run_seed

_TAIL_LINES = 60  # of a failing seed's history; --seed shows it all
_FAILURES = 10  # told in full; more of them is one cause repeated
_SLICE = 10  # seeds a worker process takes at a time


class Report(msgspec.Struct):
    """What came of a slice of seeds: small enough to cross a process boundary."""

    seeds: int = 0
    callbacks: int = 0
    facts: int = 0
    branches: dict[str, int] = {}
    failures: list[str] = []


def simulate_slice(seeds: range) -> Report:
    """Simulate seeds one after another. Failing ones are described, with the end of their history."""
    branches: Counter[str] = Counter()
    report = Report()
    failures: list[str] = []
    for seed in seeds:
        outcome = run_seed(seed)
        report.seeds += 1
        report.callbacks += outcome.callbacks
        report.facts += outcome.facts
        branches += outcome.branches
        if outcome.failed:
            failures.append(describe(outcome, _TAIL_LINES))
    report.branches, report.failures = dict(branches), failures
    return report


def describe(outcome: Outcome, lines: int) -> str:
    """A failing seed, for people: what was violated, and what led there."""
    problems = ["".join(traceback.format_exception(problem)) for problem in outcome.history.problems]
    violations = [f"seed {outcome.seed} VIOLATES {violation}" for violation in outcome.violations]
    return "\n".join([outcome.history.tail(lines), *problems, *violations, f"replay: --seed {outcome.seed}"])


def merge(reports: Iterable[Report]) -> Report:
    """All reports as one. Progress is said on the way: twenty thousand seeds take a while."""
    total, branches, began = Report(), Counter[str](), time.monotonic()
    failures: list[str] = []
    for report in reports:
        total.seeds += report.seeds
        total.callbacks += report.callbacks
        total.facts += report.facts
        branches.update(report.branches)
        failures += report.failures
        for failure in report.failures:
            click.echo(failure.splitlines()[-2], err=True)
        if total.seeds % 500 == 0:
            rate = total.seeds / (time.monotonic() - began)
            click.echo(f"{total.seeds} seeds, {rate:.1f} seeds/s, {len(failures)} failed", err=True)
    total.branches, total.failures = dict(branches), failures
    return total


def _slices(start: int, seeds: int) -> Iterator[range]:
    for first in range(start, start + seeds, _SLICE):
        yield range(first, min(first + _SLICE, start + seeds))


@click.command()
@click.option("--seeds", default=300, show_default=True, help="How many seeds to simulate.")
@click.option("--start", default=0, show_default=True, help="The first seed.")
@click.option("--jobs", default=1, show_default=True, help="Processes to simulate in.")
@click.option("--seed", type=int, default=None, help="Replay this one seed, with its whole history.")
def main(seeds: int, start: int, jobs: int, seed: int | None) -> None:
    """Simulate clients, crashes and restarts over the real engine, and check every invariant."""
    if seed is not None:
        _replay(seed)
        return
    began = time.monotonic()
    if jobs > 1:
        with ProcessPoolExecutor(jobs) as pool:
            total = merge(pool.map(simulate_slice, _slices(start, seeds)))
    else:
        total = merge(map(simulate_slice, _slices(start, seeds)))
    seconds = time.monotonic() - began
    for name, count in sorted(total.branches.items()):
        click.echo(f"{count:9}  {name}")
    for failure in total.failures[:_FAILURES]:
        click.echo(f"\n{failure}")
    click.echo(
        f"\n{total.seeds} seeds in {seconds:.1f} s ({total.seeds / seconds:.1f} seeds/s), {total.facts} facts,"
        f" {total.callbacks} callbacks, {len(total.failures)} failed"
    )
    sys.exit(1 if total.failures else 0)


def _replay(seed: int) -> None:
    outcome = run_seed(seed)
    if outcome.failed:
        click.echo(describe(outcome, len(outcome.history.lines)))
        sys.exit(1)
    click.echo(outcome.history.tail(len(outcome.history.lines)))
    click.echo(f"seed {seed}: clean, trace {outcome.trace}")


if __name__ == "__main__":
    main()
