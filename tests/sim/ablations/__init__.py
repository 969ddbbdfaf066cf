"""Safeguards taken out, one at a time: with each the simulation must find a violation, or it proves nothing.

An ablation patches the real code through pytest's monkeypatch and names the invariants whose violation shows that it
was found. `python -m tests.sim` measures how many seeds that takes.
"""

from tests.sim.ablations import families, journals, lanes, lifetimes, permissions, questions, runs, streams
from tests.sim.ablations.ablation import Ablation

_ROOMS = (lanes, runs, permissions, questions, journals, streams, lifetimes, families)
ABLATIONS: dict[str, Ablation] = {ablation.name: ablation for room in _ROOMS for ablation in room.ABLATIONS}
