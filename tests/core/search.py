"""Visit every state that a small world can reach, and say how it got to the first one that breaks a rule.

A world holds the real objects under test beside a naive model of what they should be. `explore` goes breadth-first, so
the path it reports is a shortest one. Two states with the same key are taken for one: a key must hold everything that
can make a difference later, and nothing else, or the search never ends.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, Self, TypeVar

Move = tuple[str, ...]
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
    trail: list[tuple[int, Move]] = [(-1, ("begin",))]
    seen = {world.key()}
    queue = deque([(world, 0, 0)])
    edges = depth = 0
    while queue:
        here, index, depth = queue.popleft()
        if visit is not None:
            with _path_on_failure(trail, index, ("visit",)):
                visit(here.copy())
        for move in here.moves():
            edges += 1
            there = here.copy()
            with _path_on_failure(trail, index, move):
                there.apply(move)
            key = there.key()
            if key not in seen:
                seen.add(key)
                trail.append((index, move))
                assert len(seen) <= STATES, "too many states: the key holds something that never repeats"
                queue.append((there, len(trail) - 1, depth + 1))
    return Report(len(seen), edges, depth)


@contextmanager
def _path_on_failure(trail: list[tuple[int, Move]], index: int, move: Move) -> Iterator[None]:
    try:
        yield
    except (AssertionError, LookupError) as problem:
        path = [move]
        while index > 0:
            index, before = trail[index]
            path.append(before)
        steps = "; ".join(" ".join(step) for step in reversed(path))
        raise Violation(f"{type(problem).__name__}: {problem}\n  after: {steps}") from problem
