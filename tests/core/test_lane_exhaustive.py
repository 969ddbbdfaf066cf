"""Every interleaving of a few prompts, cancels, crashes and executor steps, over the real `Lane`.

What is checked in every state and at every step is written in `lane_world.py`: I1-I6, B03, B07, B10, B11, B13-B15,
R1-R11 and R14-R16. The last test takes out one safeguard at a time and expects the search to find what that breaks.
"""

from collections.abc import Callable

import pytest

from tests.core.lane_mutants import MUTANTS
from tests.core.lane_world import LaneWorld
from tests.core.search import Violation, explore


def test_no_interleaving_of_4_prompts_3_cancels_and_2_crashes_breaks_an_invariant() -> None:
    """Else some order of events loses a cancel, hits a prompt sent later, or leaves a run endless (B07 I2-I6)."""
    report = explore(LaneWorld(prompts=4, cancels=3, crashes=2))
    print(report)
    # So many are there; far fewer would mean that a move is no longer tried and the rest proves nothing.
    assert report.states > 10_000


def test_every_state_can_be_driven_to_an_empty_lane() -> None:
    """Else a session hangs for ever: its queue is stranded or a run in it never ends (B10 B11 R14 R15)."""
    report = explore(LaneWorld(prompts=3, cancels=2, crashes=1), visit=drive_to_the_end)
    print(report)


def drive_to_the_end(world: LaneWorld) -> None:
    """Let the executors go on until nothing is left; each run needs a start and an end at most."""
    for _ in range(2 * len(world.live)):
        if world.live:
            world.apply(next(iter(world.driving_moves())))
    assert not world.live, "B10: a run never ends"
    assert not world.lane.is_busy, "R23: a session whose runs have all ended looks busy"


def test_a_cancel_of_an_idle_session_changes_nothing_for_any_prompt_after_it() -> None:
    """Else a cancel that came too late is kept and kills the next prompt (B06 R3 R10)."""
    world = LaneWorld(prompts=3, cancels=1, crashes=1, kinds=("enqueue", "steer"))
    world.apply(("cancel",))

    def nothing_is_covered(state: LaneWorld) -> None:
        assert not any(state.lane.covered(entry) for entry in state.lane.entries), "R3: an idle cancel was kept"

    explore(world, visit=nothing_is_covered)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_search_finds_what_a_missing_safeguard_breaks(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the search is blind for this rule, and its silence about the real lane means nothing."""
    mutant(monkeypatch)
    with pytest.raises(Violation, match=MUTANTS[mutant]) as found:
        explore(LaneWorld(prompts=3, cancels=2, crashes=1))
    print(found.value)
