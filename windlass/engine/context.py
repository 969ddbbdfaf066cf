"""What every workspace shares: clock, configuration, the journal, and how executors are made."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from windlass.clock import Clock
from windlass.config import Config
from windlass.journal.journal import Journal
from windlass.wire.execution import Executor, RunSpec

if TYPE_CHECKING:
    from windlass.engine.post import Mailroom
    from windlass.engine.workspace import Workspace

InThread = Callable[..., Awaitable[Any]]
ExecutorFactory = Callable[["Workspace", Config, RunSpec], Executor]


class Worktree(Protocol):
    """A directory of its own for one agent, on a branch of its own."""

    @property
    def path(self) -> str: ...

    @property
    def branch(self) -> str: ...


class Settled(Protocol):
    """`branch` is "" when nothing was done on it."""

    @property
    def branch(self) -> str: ...


class Worktrees(Protocol):
    def open(self, workspace_path: str, session_id: str) -> Coroutine[Any, Any, Worktree | None]:
        """None where there is no repository to branch from; raises OSError when it cannot be made."""

    async def settle(self, worktree: Any) -> Settled:
        """Commit what is left, remove the directory, keep the branch if anything is on it; raises OSError."""


class Graces:
    """How long a claim that is about to end still holds, in seconds."""

    def __init__(self, create: float, detach: float, unattended: float | None = None) -> None:
        self.create = create
        self.detach = detach
        self.unattended = unattended  # None: what the config says


class Context:
    """`config` is replaced as a whole by a reload; a run keeps the one it started with."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        config: Config,
        executor: ExecutorFactory,
        graces: Graces,
        new_id: Callable[[str], str],
        in_thread: InThread = asyncio.to_thread,
        mailroom: "Mailroom | None" = None,
        worktrees: Worktrees | None = None,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.config = config
        self.executor = executor
        self.graces = graces
        self.new_id = new_id
        self.mailroom = mailroom
        self.worktrees = worktrees
        self.in_thread = in_thread  # for calls that may block; the simulation has no threads
