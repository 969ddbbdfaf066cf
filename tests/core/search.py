"""Visit every state that a small world can reach, and say how it got to the first one that breaks a rule.

A world holds the real objects under test beside a naive model of what they should be. `explore` goes breadth-first, so
the path it reports is a shortest one. Two states with the same key are taken for one: a key must hold everything that
can make a difference later, and nothing else, or the search never ends.
"""

import gc
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, Protocol, Self, TypeVar

Move = tuple[str, ...]
_BROKEN = (AssertionError, LookupError)  # how a world says that a rule does not hold
STATES = 2_000_000  # a world that reaches more has a key that never repeats; without this the machine would swap


class World(Protocol):
    def copy(self) -> Self:
        """An independent world in the same state."""

    def moves(self) -> Iterable[Move]:
        """Everything that may happen next."""

    def apply(self, move: Move) -> None:
        """Let it happen, and check every invariant: an AssertionError is a violation."""

    def key(self) -> Hashable: ...


AnyWorld = TypeVar("AnyWorld", bound=World)


class Report(NamedTuple):
    states: int
    edges: int
    depth: int


class Violation(AssertionError):
    """An invariant does not hold. The message names it and the shortest way there."""


def explore(world: AnyWorld, visit: Callable[[AnyWorld], None] | None = None) -> Report:
    """Apply every move in every reachable state. `visit` is called once for each state, and may use its copy up."""
    was_collecting = gc.isenabled()
    gc.disable()  # all of it is kept until the end: to look for rubbish among it is a fifth of the search
    try:
        return _explore(world, visit)
    finally:
        if was_collecting:
            gc.enable()


def _explore(world: AnyWorld, visit: Callable[[AnyWorld], None] | None) -> Report:
    trail: list[tuple[int, Move]] = [(-1, ("begin",))]
    seen = {world.key()}
    queue = deque([(world, 0, 0)])
    edges = depth = 0
    while queue:
        here, index, depth = queue.popleft()
        if visit is not None:
            try:
                visit(here.copy())
            except _BROKEN as problem:
                raise _violation(trail, index, ("visit",), problem) from problem
        for move in here.moves():
            edges += 1
            there = here.copy()
            # No context manager here: with hundreds of thousands of moves, entering one for each is a seventh.
            try:
                there.apply(move)
            except _BROKEN as problem:
                raise _violation(trail, index, move, problem) from problem
            key = there.key()
            if key not in seen:
                seen.add(key)
                trail.append((index, move))
                assert len(seen) <= STATES, "too many states: the key holds something that never repeats"
                queue.append((there, len(trail) - 1, depth + 1))
    return Report(len(seen), edges, depth)


def _violation(trail: list[tuple[int, Move]], index: int, move: Move, problem: Exception) -> Violation:
    path = [move]
    while index > 0:
        index, before = trail[index]
        path.append(before)
    steps = "; ".join(" ".join(step) for step in reversed(path))
    return Violation(f"{type(problem).__name__}: {problem}\n  after: {steps}")
