"""What outlives a simulated server process: the directories, the database, time, ids, and what the clients know."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from windlass import limits
from windlass.clock import Clock
from windlass.config import Config, PermissionsConfig
from windlass.engine.context import Graces
from windlass.journal import journal
from windlass.testing.history import History
from windlass.wire.http import Prompt

_EPOCH_SECONDS = 1_700_000_000.0  # the day the simulated world begins
_RESTART_SECONDS = 1.0  # between two server processes
CREATE_GRACE_SECONDS = 0.4
DETACH_GRACE_SECONDS = 0.2
GRACES = Graces(CREATE_GRACE_SECONDS, DETACH_GRACE_SECONDS, unattended=1.5)
CONFIG = Config(
    model="simulated/model",
    permissions=PermissionsConfig(allow=("view",), ask=("*",), deny=("forbidden",)),
)

# The bounds of the real server are far away from what a second of a small world can reach. With these, a queue fills,
# a reader falls behind the tail, a catch-up needs several pages, and an executor is given up, in most seeds.
SMALL_LIMITS: dict[str, Any] = {
    "TAIL_BYTES": 6_000,
    "STREAM_WRITE_BYTES": 2_500,
    "STREAM_YIELD_EVENTS": 4,
    "PAGE_FACTS": 5,
    "COMMIT_FACTS": 8,
    "TRIM_FACTS": 12,
    "QUEUE_PER_SESSION": 4,
    "RUN_PROMPT_CHARACTERS": 8,
    "PENDING_PERMISSIONS": 5,
    "PENDING_QUESTIONS": 3,
    "STREAMS_PER_CLIENT": 3,
    "CHECKPOINT_SECONDS": 0.05,
    "STOP_ASK_SECONDS": 0.3,
    "STOP_ABORT_SECONDS": 0.3,
    "RETIRED_SECONDS": 3600.0,
}


class SimClock(Clock):
    """Virtual time that goes on from one server process to the next."""

    def __init__(self) -> None:
        self._base = _EPOCH_SECONDS
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        return self._base if self._loop is None else self._base + self._loop.time()

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """A new server process: its loop counts from zero, the world does not."""
        self._base = self.now() + _RESTART_SECONDS
        self._loop = loop


class World:
    """Shared by all clients of one seed. What they know of each other's work, they could have read over REST."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.history = History()
        self.clock = SimClock()
        self.history.time = self.clock.now
        self.data_dir = directory / "data"
        self.database = self.data_dir / "journal.db"
        self.paths = [directory / f"project{number}" for number in range(1, self.rng.choice((2, 2, 3)))]
        self.sessions: dict[str, list[str]] = {str(path): [] for path in self.paths}
        self.prompts: list[Prompt] = []  # the newest last
        self.run_ids: list[str] = []
        self.writers: list[tuple[str, str]] = []  # runs that wrote files, with their sessions
        self.permission_ids: list[str] = []
        self.batch_ids: list[str] = []
        # In half of the worlds: in the others, seeds that found something once still find it.
        self.asks_questions = random.Random(f"{seed} questions").random() < 0.5
        self.works = seed % 2 == 1  # for the same reason
        self.files: dict[str, bytes] = {}  # by absolute path
        self._ids = 0
        self.data_dir.mkdir()
        for path in self.paths:
            path.mkdir()
            path.with_suffix(".link").symlink_to(path)

    def new_id(self, prefix: str) -> str:
        """Numbered, so that a history can be read and a seed gives the same ids every time."""
        self._ids += 1
        return f"{prefix}{self._ids}"

    def begin_life(self, loop: asyncio.AbstractEventLoop) -> None:
        """A server process starts."""
        self.clock.begin(loop)
        self.history.life += 1


@contextmanager
def small_world(world: World) -> Iterator[None]:
    """Small limits, ids from the world and silent logs while a seed runs; all of it put back afterwards."""
    changes = [(limits, name, value) for name, value in SMALL_LIMITS.items()]
    # The journal makes two ids of its own; random ones would order workspaces differently in every run of a seed.
    changes += [(journal, "new_id", world.new_id), (journal, "new_epoch", lambda: world.new_id("epoch"))]
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    logs = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory(), processors=[_drop])
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        structlog.configure(**logs)


def _drop(logger: Any, method: str, event: Any) -> Any:
    raise structlog.DropEvent
