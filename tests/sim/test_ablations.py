"""The checker can fail: each safeguard that is taken out is missed by somebody within two hundred seeds."""

import pytest

from tests.sim.ablations import ABLATIONS
from windlass.testing.simulation import run_seed

_SEEDS = 200


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_missing_safeguard_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the simulation would be clean with and without it, and proves nothing about it."""
    ablation = ABLATIONS[name]
    ablation.remove(monkeypatch)
    for seed in (ablation.last_found, *range(_SEEDS)):
        found = {violation.partition(":")[0] for violation in run_seed(seed).violations}
        if found & set(ablation.found_by):
            return
    raise AssertionError(f"{_SEEDS} seeds did not notice: {ablation.remove.__doc__}")
