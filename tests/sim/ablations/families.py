"""Families of agents: what keeps a run's agents with it, taken out."""

from typing import Any

import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.core.families import Families
from windlass.engine import recovery
from windlass.engine.agents import Agents
from windlass.engine.runner import Runner


def cancel_the_parent_alone(patch: pytest.MonkeyPatch) -> None:
    """A cancel ends a run and leaves the agents it started at work."""
    patch.setattr(Agents, "cover_below", lambda agents, run_ids, by: [])


def cancel_one_level_only(patch: pytest.MonkeyPatch) -> None:
    """A cancel reaches a run's agents and not theirs."""
    patch.setattr(Families, "_below", lambda families, run_id: iter(families.children(run_id)))


def end_before_ones_agents(patch: pytest.MonkeyPatch) -> None:
    """A run is told to be over while its agents still write."""

    async def at_once(agents: Agents, entry: Any) -> None:
        agents._workspace.cancel_below(entry)

    patch.setattr(Agents, "end_below", at_once)


def leave_agents_behind(patch: pytest.MonkeyPatch) -> None:
    """A run that ends by itself forgets the agents it started."""

    async def nothing(agents: Agents, entry: Any) -> None:
        pass

    patch.setattr(Agents, "end_below", nothing)


def start_agents_for_a_covered_run(patch: pytest.MonkeyPatch) -> None:
    """A run that was cancelled starts another agent, which nothing will cancel."""

    async def delegate(runner: Runner, request: Any) -> Any:
        return await runner.workspace.agents.delegate(runner.entry, runner._config, request)

    patch.setattr(Runner, "delegate", delegate)


def recover_parents_first(patch: pytest.MonkeyPatch) -> None:
    """After a restart a run is told to be over before the agents it had started."""

    place = recovery._place
    patch.setattr(recovery, "_place", lambda workspace, lane: -place(workspace, lane))


ABLATIONS = (
    Ablation(cancel_the_parent_alone, ("family",), 10),
    Ablation(cancel_one_level_only, ("family",), 11),
    Ablation(end_before_ones_agents, ("family",), 10),
    Ablation(leave_agents_behind, ("family", "I1", "I3", "I19"), 10),
    Ablation(start_agents_for_a_covered_run, ("family",), 1),
    Ablation(recover_parents_first, ("family",), 76),
)
