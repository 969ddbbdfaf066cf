"""What every workspace shares: clock, configuration, the journal, and how executors are made."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from windlass.clock import Clock
from windlass.config import Config
from windlass.journal.journal import Journal
from windlass.wire.delegation import CallMcpTool, ListMcpTools, OwnerReply
from windlass.wire.execution import Executor, RunSpec
from windlass.wire.mcp import McpState

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


class Root(Protocol):
    """A workspace's directory, held open: no path leaves it. Methods block and raise ToolError."""

    def relative(self, path: str) -> str:
        """The path below the root that is meant."""

    def read_if_exists(self, path: str, limit: int) -> bytes | None:
        """The content of a regular file, None when there is none."""

    def replace_bytes(self, path: str, before: bytes | None, content: bytes | None) -> None:
        """Write (None: remove) only if the file still is `before` (None: still does not exist)."""

    def close(self) -> None: ...


class McpServers(Protocol):
    """The MCP servers of one workspace."""

    @property
    def states(self) -> list[McpState]: ...

    async def answer(self, request: ListMcpTools | CallMcpTool) -> OwnerReply:
        """What a run asks for. Cancelling the caller ends its call."""

    def close(self) -> None:
        """Stop them, without waiting for it. Nothing is told any more."""


class NoMcpServers:
    """Where none are configured, and none can be."""

    states: list[McpState] = []

    async def answer(self, request: ListMcpTools | CallMcpTool) -> OwnerReply:
        return OwnerReply(error="There are no MCP servers here.")

    def close(self) -> None:
        pass


McpFactory = Callable[[str, Callable[[McpState], None]], McpServers]  # (path, told of each change) -> its servers


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
        mcp: McpFactory = lambda path, tell: NoMcpServers(),
        open_root: Callable[[str], Root] | None = None,
        let_go: Callable[[str], None] = lambda session_id: None,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.config = config
        self.executor = executor
        self.graces = graces
        self.new_id = new_id
        self.mailroom = mailroom
        self.worktrees = worktrees
        self.mcp = mcp
        self.open_root = open_root  # None: no file of a workspace is ever written here
        self.let_go = let_go  # nothing uses that session any more: end what was kept for it
        self.in_thread = in_thread  # for calls that may block; the simulation has no threads
