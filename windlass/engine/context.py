"""What every workspace shares: clock, configuration, the journal, and how executors are made."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from windlass.clock import Clock
from windlass.config import Config
from windlass.journal.journal import Journal
from windlass.wire.execution import Executor

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

InThread = Callable[..., Awaitable[Any]]
ExecutorFactory = Callable[["Workspace", Config, str], Executor]  # the last is the model: "provider/model"


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
        on_close: "Callable[[Workspace], None]" = lambda workspace: None,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.config = config
        self.executor = executor
        self.graces = graces
        self.new_id = new_id
        self.on_close = on_close  # lets go of what was made for a workspace, such as its directory's handle
        self.in_thread = in_thread  # for calls that may block; the simulation has no threads
