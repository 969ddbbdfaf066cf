"""What a reader of a lane's facts may rely on, and how a lane is copied; shared by the lane's tests."""

from typing import cast

from windlass.core.lane import Entry, Lane
from windlass.wire.events import Fact
from windlass.wire.runs import Outcome, Run, RunComplete


def read_facts(facts: list[Fact], live: set[str], durable: dict[str, Fact]) -> list[tuple[str, Outcome]]:
    """Read one commit: the newest fact of each run goes to `durable`; returns the runs that ended, and how.

    `live` are the runs that have not ended. A run's end is stored, then announced, in one commit, and nothing follows.
    """
    stored: dict[str, Outcome] = {}
    announced: dict[str, Outcome] = {}
    for fact in facts:
        assert fact.run in live and fact.run not in announced, f"I3: a {fact.kind} fact of {fact.run}, which has ended"
        match fact.body:
            case Run() as run:
                assert run.id not in stored, f"I3: {run.id} is stored again after its end"
                durable[run.id] = fact
                if run.is_terminal:
                    stored[run.id] = cast(Outcome, run.state)
            case RunComplete() as complete:
                assert fact.run in stored, f"I3: {fact.run} is announced before its end is stored"
                outcome = announced[fact.run] = stored[fact.run]
                assert complete.cancelled == (outcome == "canceled"), "B03: readers are told whether it was a cancel"
                assert bool(complete.error) == (outcome in ("failed", "interrupted")), "B03: a cancel is not an error"
    assert stored == announced, f"B10 R15 R16: stored {stored}, announced {announced}"
    return list(announced.items())


def copy_lane(lane: Lane) -> Lane:
    """A lane in the same state that shares nothing with it but frozen values."""
    other = object.__new__(type(lane))
    other.__dict__.update(lane.__dict__)
    other._entries = {}
    for id, entry in lane._entries.items():
        twin = Entry(entry.run, entry.private)
        twin.taken = entry.taken
        other._entries[id] = twin
        if entry is lane.active:
            other.active = twin
    return other
