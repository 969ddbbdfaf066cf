"""Families of runs: who may start an agent, who ends with whom. Pure decisions, so every case is a few lines."""

import pytest

from windlass.core.families import Families, FamilyLimits
from windlass.errors import TooMany

LIMITS = FamilyLimits(depth=3, running=2, total=4, tokens=100, seconds=60.0)


def started(families: Families, parent: str, run: str, depth: int = 1, session: str = "") -> None:
    family = families.admit(parent, depth, LIMITS, 0.0)
    families.join(family, run, session or f"session of {run}", parent, depth)


def names(members: list[object]) -> list[str]:
    return [member.run_id for member in members]  # type: ignore[attr-defined]


def test_descendants_are_told_the_deepest_first() -> None:
    """B72: a parent that ended before its child would be told of nobody, and its child's end would come too late."""
    families = Families()
    started(families, "root", "child")
    started(families, "child", "grandchild", 2)
    assert names(families.descendants("root")) == ["grandchild", "child"]
    assert names(families.descendants("child")) == ["grandchild"]
    assert names(families.descendants("a stranger")) == []


def test_a_level_too_deep_is_refused() -> None:
    """A31: an agent that starts itself would otherwise go on for ever."""
    with pytest.raises(TooMany, match="3 levels deep"):
        Families().admit("root", 4, LIMITS, 0.0)


def test_all_levels_share_the_limit_of_agents_at_work() -> None:
    """A31: with a limit of each its own, three levels of two are fourteen."""
    families = Families()
    started(families, "root", "child")
    started(families, "child", "grandchild", 2)
    for parent in ("root", "child", "grandchild"):
        with pytest.raises(TooMany, match="2 agents are at work"):
            families.admit(parent, 2, LIMITS, 0.0)
    families.ended("grandchild")
    families.admit("root", 1, LIMITS, 0.0)


def test_runs_of_one_agent_are_one_agent_at_work() -> None:
    """B14: what is steered into an agent would count as another one, and steering be refused."""
    families = Families()
    started(families, "root", "child", session="a")
    started(families, "root", "steered", session="a")
    family = families.of("root")
    assert family is not None and families.running(family) == 1


def test_one_that_works_may_be_given_more_although_no_more_may_start() -> None:
    """B72: at the limit a parent could not correct the agents it has."""
    families = Families()
    started(families, "root", "one")
    started(families, "root", "two")
    assert families.admit("root", 1, LIMITS, 0.0, new_agent=False) is families.of("root")
    with pytest.raises(TooMany, match="2 agents are at work"):
        families.admit("root", 1, LIMITS, 0.0)


def test_the_total_counts_those_that_ended_too() -> None:
    """A31: one after the other, a loop of agents would never end."""
    families = Families()
    for number in range(4):
        started(families, "root", f"run {number}")
        families.ended(f"run {number}")
    with pytest.raises(TooMany, match="4 agents were started"):
        families.admit("root", 1, LIMITS, 0.0)


def test_tokens_of_every_member_count_and_those_of_others_do_not() -> None:
    """A31: the budget is the family's, and one's own family's only."""
    families = Families()
    started(families, "root", "child")
    started(families, "another root", "another")
    families.spend("root", 40, 0.0)
    families.spend("child", 59, 0.0)
    families.spend("another", 1_000, 0.0)
    family = families.of("child")
    assert family is not None and families.overspent(family, 0.0) == ""
    families.spend("child", 1, 0.0)
    assert "used up their 100 tokens" in families.overspent(family, 0.0)
    with pytest.raises(TooMany, match="used up"):
        families.admit("root", 1, LIMITS, 0.0)


def test_time_counts_from_the_first_agent() -> None:
    """A31: a root that worked for hours before it needs an agent must still get one."""
    families = Families()
    family = families.admit("root", 1, LIMITS, 1_000.0)
    families.join(family, "child", "s", "root", 1)
    assert families.overspent(family, 1_059.0) == ""
    assert "1 minutes" in families.overspent(family, 1_060.0)


def test_a_root_that_ended_takes_its_family_along() -> None:
    """I19: families of runs that are over would pile up, and the next run of that id inherit what was spent."""
    families = Families()
    started(families, "root", "child")
    families.spend("child", 1_000, 0.0)
    families.ended("child")
    families.ended("root")
    assert families.of("root") is None
    families.admit("root", 1, LIMITS, 0.0)


def test_an_admission_that_is_not_used_leaves_nothing() -> None:
    """A refusal further on (no room in the journal) must not count as an agent."""
    families = Families()
    families.admit("root", 1, LIMITS, 0.0)
    assert families.of("root") is None
