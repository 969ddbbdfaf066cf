"""Families: a run, the agents it started, and theirs. Who may start another, and who ends with whom.

A *family* is everything below one root run: a run that no other run started. All of it shares its limits, so that three
levels of agents cannot each have eight of their own. Nothing of a family outlives its root, so all of this is memory:
after a restart there is no root that goes on.
"""

from collections.abc import Iterator

import msgspec

from windlass.errors import TooMany


class FamilyLimits(msgspec.Struct, frozen=True):
    """What one root run may use: `depth` levels below it, agents running at once and in all, tokens, seconds."""

    depth: int
    running: int
    total: int
    tokens: int
    seconds: float


class Family:
    """What a root run's agents have used so far. `agents_cost` is theirs alone: the root's own is with its run."""

    __slots__ = ("agents_cost", "began_at", "limits", "root", "spent_tokens", "total")

    def __init__(self, root: str, limits: FamilyLimits, now: float) -> None:
        self.root = root
        self.limits = limits
        self.began_at = now
        self.total = 0
        self.spent_tokens = 0
        self.agents_cost = 0.0


class Member:
    """A run that was started by another run, until it has ended."""

    __slots__ = ("depth", "family", "parent_run", "run_id", "session_id")

    def __init__(self, run_id: str, session_id: str, parent_run: str, depth: int, family: Family) -> None:
        self.run_id = run_id
        self.session_id = session_id
        self.parent_run = parent_run
        self.depth = depth
        self.family = family


class Families:
    """The families of one workspace."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}  # by root run
        self._members: dict[str, Member] = {}  # by run, of those that have not ended

    # -- looking ------------------------------------------------------------------------------------------------------

    def of(self, run_id: str) -> Family | None:
        """The family that this run belongs to, if it started any agent or is one."""
        member = self._members.get(run_id)
        return member.family if member is not None else self._families.get(run_id)

    def children(self, run_id: str) -> list[Member]:
        return [member for member in self._members.values() if member.parent_run == run_id]

    def descendants(self, run_id: str) -> list[Member]:
        """Everything below a run that has not ended, the deepest first: the order in which they end."""
        return sorted(self._below(run_id), key=lambda member: -member.depth)

    def _below(self, run_id: str) -> Iterator[Member]:
        for child in self.children(run_id):
            yield child
            yield from self._below(child.run_id)

    def members(self, family: Family) -> list[Member]:
        return [member for member in self._members.values() if member.family is family]

    def running(self, family: Family) -> int:
        """How many agents are at work: sessions, not runs, because what waits behind a run is the same agent's."""
        return len({member.session_id for member in self.members(family)})

    # -- deciding -----------------------------------------------------------------------------------------------------

    def admit(self, parent_run: str, depth: int, limits: FamilyLimits, now: float, new_agent: bool = True) -> Family:
        """Whether a run may set an agent to work at this depth; raises TooMany, which says what to do instead.

        Not a `new_agent`: one that is at work gets more to do, which is no more at work than before.
        """
        family = self.of(parent_run) or Family(parent_run, limits, now)
        if depth > family.limits.depth:
            raise TooMany(f"Agents may be {family.limits.depth} levels deep at most. Do this part yourself.")
        if family.total >= family.limits.total:
            raise TooMany(f"{family.total} agents were started for this run, and more are not allowed. Go on alone.")
        if new_agent and self.running(family) >= family.limits.running:
            raise TooMany(f"{family.limits.running} agents are at work. Wait for one of them to end, then start this.")
        if over := self.overspent(family, now):
            raise TooMany(over)
        return family

    def join(self, family: Family, run_id: str, session_id: str, parent_run: str, depth: int) -> None:
        """A run that was admitted is in its family from the moment it is accepted: any later cancel reaches it."""
        self._families[family.root] = family
        family.total += 1
        self._members[run_id] = Member(run_id, session_id, parent_run, depth, family)

    def spend(self, run_id: str, tokens: int, cost: float) -> Family | None:
        """Count what an agent (or the root) used; the family, if it has one."""
        family = self.of(run_id)
        if family is not None:
            family.spent_tokens += tokens
            if run_id != family.root:
                family.agents_cost += cost
        return family

    def overspent(self, family: Family, now: float) -> str:
        """Why the family may not go on, "" if it may."""
        if family.spent_tokens >= family.limits.tokens:
            return f"The agents of this run have used up their {family.limits.tokens:,} tokens."
        if now - family.began_at >= family.limits.seconds:
            return f"The agents of this run have used up their {family.limits.seconds / 60:g} minutes."
        return ""

    def ended(self, run_id: str) -> None:
        """The run is over. A root takes its family with it."""
        self._members.pop(run_id, None)
        self._families.pop(run_id, None)
