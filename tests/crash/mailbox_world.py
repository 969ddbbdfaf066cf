"""Writers and readers of one mailbox and one store, killed and started again until every message is through."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

from windlass.fleet.store.store import Store

from .mailbox_workers import PROJECT, Plan, child, read, write

_END_SECONDS = 1_800.0  # for everything; a mailbox that is stuck must not keep the suite for ever
Work = Callable[[Plan, int, str], None]


class Crowd:
    """The living processes, each with what it does."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._seed = seed
        self._starts = 0
        self._living: dict[int, tuple[Work, int]] = {}
        self.counts: Counter[str] = Counter()

    def start(self, work: Work, number: int) -> None:
        self._starts += 1
        pid = child(work, self._plan, number, f"{self._seed}-{self._starts}")
        self._living[pid] = (work, number)

    def count(self, work: Work) -> int:
        return sum(kind is work for kind, _ in self._living.values())

    def kill_one(self, dice: random.Random) -> None:
        if self._living:
            os.kill(dice.choice(sorted(self._living)), signal.SIGKILL)
            self.counts["killed from outside"] += 1

    def look(self) -> None:
        """Start again whoever was killed; whoever is done is done."""
        for pid in list(self._living):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                work, number = self._living.pop(pid)
                if os.WIFSIGNALED(status):
                    self.counts["kills"] += 1
                    self.start(work, number)

    def end(self) -> None:
        for pid in self._living:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._living.clear()


def run(plan: Plan, seed: int) -> tuple[Counter[str], list[str]]:
    """The whole of it; what was counted, and what was already seen to be wrong."""
    plan.reports.mkdir(parents=True)
    dice = random.Random(seed)
    crowd = Crowd(plan, seed)
    problems: list[str] = []
    onlooker = plan.store()  # opened once: from then on it relies on what the writers leave
    onlooker.index(PROJECT)
    deadline = time.monotonic() + _END_SECONDS
    try:
        for number in range(plan.writers):
            crowd.start(write, number)
        for number in range(plan.readers):
            crowd.start(read, number)
        while crowd.count(write) or crowd.count(read):
            if time.monotonic() > deadline:
                problems.append(f"B71: after {_END_SECONDS:.0f} s it is not over")
                break
            time.sleep(dice.uniform(0.01, 0.1))
            if dice.random() < 0.3:
                crowd.kill_one(dice)
            crowd.look()
            problems += _indices(onlooker, crowd.counts)
            if not crowd.count(write):
                (plan.root / "no-more").touch()
    finally:
        crowd.end()
    return crowd.counts, problems


def _indices(store: Store, counts: Counter[str]) -> list[str]:
    """I24: whatever was cut short a moment ago, an index that is read equals its rebuild."""
    counts["indices compared"] += 1
    rebuilt = store.rebuild(PROJECT)
    counts["found cut short"] += not rebuilt.was_good
    seen = rebuilt.mended if rebuilt.was_good else []  # else no read would have come before the mending
    return [f"I24: {name} differed from its rebuild" for name in seen] + rebuilt.problems
