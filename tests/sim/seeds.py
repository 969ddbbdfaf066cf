"""What seeds give while every safeguard is in place. Several tests ask for the same ones."""

import functools
from collections import Counter
from typing import NamedTuple

from windlass.testing.sim import describe
from windlass.testing.simulation import run_seed

SEEDS = 300  # from 0 on: those that every run of the suite holds clean (test_simulation.py)
_TAIL_LINES = 60  # of a failing seed's history


class Told(NamedTuple):
    """The part of an outcome that is small enough to keep. `failure` describes one for people; "" is none."""

    trace: str
    violations: list[str]
    branches: Counter[str]
    failure: str


@functools.cache  # the same seed gives the same outcome: simulating it for each test that asks proves nothing more
def told(seed: int) -> Told:
    """Simulate a seed, once a process. Not while a safeguard is taken out: other tests would be told of the harm."""
    outcome = run_seed(seed)
    failure = describe(outcome, _TAIL_LINES) if outcome.failed else ""
    return Told(outcome.trace, outcome.violations, outcome.branches, failure)
