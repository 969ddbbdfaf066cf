"""Three hundred seeds of clients, crashes and restarts over the real engine, checked against every invariant.

`make sim SEEDS=20000` runs more of the same.
"""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.sim.seeds import SEEDS, told
from windlass.testing.branches import IMPORTANT
from windlass.testing.simulation import run_seed

_SLICE = 25  # so that a few test processes can share them
_REACHING = (71, 134, 206, 51, 1)  # together they go everywhere; when a change has moved them, others are looked for
_REGRESSIONS = Path(__file__).with_name("regressions.txt")


def _kept_seeds() -> list[int]:
    lines = (line.partition("#")[0].strip() for line in _REGRESSIONS.read_text("utf-8").splitlines())
    return [int(line) for line in lines if line]


@pytest.mark.parametrize("first", range(0, SEEDS, _SLICE))
def test_no_seed_violates_an_invariant(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise some interleaving of prompts, cancels, answers, streams and crashes loses or repeats something.

    I1-I13, I15-I17, I19; B19, B24, B31; R1-R11, R14, R15, R22, R24, R28-R36, R39, R43, R44, R48.
    """
    began = time.monotonic()
    for seed in range(first, first + _SLICE):
        assert not told(seed).failure, told(seed).failure
    with capsys.disabled():
        print(f" [{_SLICE / (time.monotonic() - began):.1f} seeds/s]", end="")


@pytest.mark.parametrize("seed", _kept_seeds())
def test_a_seed_that_once_failed_stays_clean(seed: int) -> None:
    """Otherwise something that was mended is broken again."""
    assert not told(seed).failure, told(seed).failure


def test_the_seeds_reach_every_rare_branch() -> None:
    """Otherwise the simulation is clean because it no longer goes where things break."""
    missing = set(IMPORTANT)
    counted: Counter[str] = Counter()
    for seed in (*_REACHING, *range(SEEDS)):
        counted += told(seed).branches
        missing -= counted.keys()
        if not missing:
            return
    raise AssertionError(f"never reached in {SEEDS} seeds: {sorted(missing)}")


@pytest.mark.parametrize("seed", [6, 7])
def test_a_seed_gives_the_same_trace_in_every_process(seed: int) -> None:
    """Otherwise a failing seed cannot be replayed, and a failure cannot be understood."""
    code = f"from windlass.testing.simulation import run_seed; print(run_seed({seed}).trace)"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "17"}
    )
    assert elsewhere.stdout.strip() == run_seed(seed).trace


def test_different_seeds_give_different_traces() -> None:
    """Otherwise thousands of seeds are one seed repeated."""
    assert len({told(seed).trace for seed in range(10)}) == 10
