"""One seed: clients and server processes over one data directory, ended by crashes, by SIGTERM, and at last in peace.

    outcome = run_seed(17)
    assert not outcome.violations

The same seed gives the same `trace`, in every process.
"""

import hashlib
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from windlass.testing.branches import branches
from windlass.testing.checker import check, check_database
from windlass.testing.history import History
from windlass.testing.run_record import Records
from windlass.testing.seeded_writer import Crash, Fault, FaultKind
from windlass.testing.sim_client import SimClient
from windlass.testing.sim_process import EndKind, Life, SimProcess
from windlass.testing.sim_server import LEFT_POISONED, SimServer
from windlass.testing.sim_world import World, small_world
from windlass.testing.simloop import SimDeadlock, SimLoop, SimRunaway

_RAM = Path("/dev/shm")
_FAULTS: tuple[FaultKind, ...] = (
    "dies before commit",
    "dies after commit",
    "dies after commit",
    "refused",
    "refused but written",
)
_LEFT = "it left"
_CALLBACKS = 200_000  # of one server process; the longest seeds need a tenth


class Outcome(msgspec.Struct, frozen=True):
    """What came of a seed. `branches` counts the rare things it reached."""

    seed: int
    trace: str
    violations: list[str]
    branches: Counter[str]
    callbacks: int
    facts: int
    history: History

    @property
    def failed(self) -> bool:
        return bool(self.violations)


def run_seed(seed: int) -> Outcome:
    """Simulate one seed and check everything. Odd seeds shuffle the order of callbacks, even ones keep asyncio's."""
    directory = Path(tempfile.mkdtemp(prefix="windlass-sim-", dir=_RAM if _RAM.is_dir() else None))
    try:
        world = World(seed, directory.resolve())
        with small_world(world):
            return _Simulation(world).run()
    finally:
        shutil.rmtree(directory)


class _Simulation:
    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self._rng = random.Random(f"{world.seed} plan")
        self._clients = [SimClient(world, number) for number in range(1, self._rng.choice((2, 3, 4, 5)) + 1)]
        self._trace = hashlib.sha256()
        self._callbacks = 0

    def run(self) -> Outcome:
        for life in self._plan():
            self._live(life)
            self._history.violations += check_database(self._world.database, self._history)
            if self._history.violations:
                break  # what follows from it would only hide it
        records = Records(self._history)
        if not self._history.violations:
            check(self._history, records)
        return Outcome(
            self._world.seed,
            self._trace.hexdigest(),
            [str(violation) for violation in self._history.violations],
            branches(self._history, records),
            self._callbacks,
            sum(len(ledger.facts) for ledger in self._history.ledgers.values()),
            self._history,
        )

    def _plan(self) -> list[Life]:
        rng = self._rng
        lives = []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            end: EndKind = rng.choice(("crash", "commit", "commit", "drain", "follow"))
            fault = None
            if end == "commit":
                fault = Fault(rng.choice(_FAULTS), rng.choice((1, 2, 3, 5, 10, 15, 20, 30)))
            lives.append(Life(end, 3.0 if end == "commit" else rng.choice((0.05, 0.3, 0.6, 1.0, 1.5)), fault))
        return [*lives, Life("peace", rng.choice((0.5, 1.0, 2.0)))]

    def _live(self, life: Life) -> None:
        loop = SimLoop(self._world.seed * 16 + self._history.life, self._world.seed % 2 == 1, _CALLBACKS)
        self._world.begin_life(loop)
        server = SimServer(self._world, life.fault)
        process = SimProcess(self._world, server, self._clients, life, self._rng)
        how = _LEFT
        try:
            loop.run_until_complete(process.run())
        except Crash as crash:
            how = str(crash)
            server.closed = True
        except (SimDeadlock, SimRunaway) as problem:
            self._history.violate("I19", str(problem))
        except Exception as problem:  # the border of the simulated process: whatever broke in it is a finding
            self._history.violate("broken", f"{type(problem).__name__}: {problem}")
            self._history.problems.append(problem)
        # Of a process that is killed, only what had come out by then: its tasks had no time to look at each other.
        self._check(loop.unhandled() if how == _LEFT else loop._problems)
        if how == LEFT_POISONED:
            server.check_still_told()
        self._history.ended(how)
        self._callbacks += loop.callbacks
        self._trace.update(loop.trace.encode())
        bury(loop)
        server.backend.close()

    def _check(self, problems: list[BaseException]) -> None:
        for problem in problems:
            self._history.violate("broken", f"nobody looked at {type(problem).__name__}: {problem}")
            self._history.problems.append(problem)


def bury(loop: SimLoop) -> None:
    """Make sure that nothing of a process that is gone runs later, when it is collected."""
    loop.close_left()  # what the dead say has no meaning
    for task in loop._in_order():
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
