"""The checker can fail: each safeguard that is taken out is missed by some seed."""

import re
from pathlib import Path

import pytest

from tests.sim.ablations import ABLATIONS
from tests.sim.hunt import first_to_notice
from tests.sim.seeds import SEEDS, told
from windlass.testing.branches import IMPORTANT

_SEEDS = 2_000
_PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


@pytest.mark.timeout(900)  # seconds; when a change has moved every seed, the rarest of them takes hundreds
@pytest.mark.parametrize("name", ABLATIONS)
def test_a_missing_safeguard_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the simulation would be clean with and without it, and proves nothing about it."""
    ablation = ABLATIONS[name]
    ablation.remove(monkeypatch)
    found = first_to_notice(name, (ablation.last_found, *range(_SEEDS)))
    assert found is not None, f"{_SEEDS} seeds did not notice: {ablation.harm}"


def test_nothing_is_found_while_every_safeguard_is_in_place() -> None:
    """Otherwise seeds find something whatever is taken out, and being found says nothing."""
    # The first of them are held clean where they are simulated anyway.
    seeds = {ablation.last_found for ablation in ABLATIONS.values()} - set(range(SEEDS))
    assert [violation for seed in sorted(seeds) for violation in told(seed).violations] == []


def test_the_page_about_reliability_has_every_ablation_and_every_rare_branch() -> None:
    """Otherwise readers trust a table that tells of another simulation."""
    rows = re.findall(r"^\| ([^|]+?) \|", _PAGE.read_text("utf-8"), re.MULTILINE)
    assert [name for name in (*ABLATIONS, *IMPORTANT) if name not in rows] == []
