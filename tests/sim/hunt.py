"""Look for the first seed that misses a safeguard."""

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from tests.sim.ablations import ABLATIONS
from windlass.testing.simulation import run_seed


class Found(NamedTuple):
    """The seed that noticed, and the invariants it saw violated."""

    seed: int
    invariants: tuple[str, ...]


def hunt(name: str, seeds: int) -> Found | None:
    """Take the safeguard out, and try seeds from 0 on until one notices; None when none does."""
    with pytest.MonkeyPatch.context() as patch:
        ABLATIONS[name].remove(patch)
        return first_to_notice(name, range(seeds))


def first_to_notice(name: str, seeds: Iterable[int]) -> Found | None:
    """The first of these seeds that sees what the ablation was expected to break. The safeguard is out already."""
    expected = set(ABLATIONS[name].found_by)
    for seed in seeds:
        violated = {violation.partition(":")[0] for violation in run_seed(seed).violations}
        if violated & expected:
            return Found(seed, tuple(sorted(violated & expected)))
    return None
