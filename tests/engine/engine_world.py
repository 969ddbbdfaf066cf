"""The real registry over a real SQLite file and its real thread; only what an executor does is decided by the test."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from windlass.clock import Clock
from windlass.config import Config
from windlass.engine.context import Context, ExecutorFactory, Graces, Worktrees
from windlass.engine.post import Mailroom
from windlass.engine.registry import Registry
from windlass.engine.workspace import Workspace
from windlass.ids import new_id
from windlass.journal import view
from windlass.journal.journal import Journal
from windlass.journal.records import FactRow
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter
from windlass.tools.files import WorkspaceRoot
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.http import Prompt
from windlass.wire.permissions import By
from windlass.wire.runs import Run

BY = By("tester")


class Playing:
    """An executor that does what the test wrote for it."""

    def __init__(self, play: Callable[[Events], Awaitable[RunOutcome]]) -> None:
        self._play = play

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        return await self._play(events)


def nobody_runs(*_: object) -> Playing:
    raise AssertionError("this test has no runs")


class EngineWorld:
    """`registry` is open until the world is left. `path` is a directory nobody has opened yet."""

    def __init__(
        self,
        root: Path,
        executor: ExecutorFactory,
        config: Config | None = None,
        mailroom: Mailroom | None = None,
        worktrees: Worktrees | None = None,
        let_go: Callable[[str], None] = lambda session_id: None,
    ) -> None:
        (root / "data").mkdir(exist_ok=True)
        (root / "project").mkdir(exist_ok=True)
        self.path = str(root / "project")
        self.journal = Journal(ThreadWriter(SqliteBackend(root / "data" / "journal.db")), Clock(), lambda reason: None)
        settings = config or Config(model="x/y")
        graces = Graces(30, 10)
        context = Context(
            self.journal,
            Clock(),
            settings,
            executor,
            graces,
            new_id,
            mailroom=mailroom,
            worktrees=worktrees,
            open_root=WorkspaceRoot,
            let_go=let_go,
        )
        self.registry = Registry(context, str(root / "data"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.registry.drain(0.0)
        await self.journal.close()

    async def open(self, client_id: str = "client") -> Workspace:
        return await self.registry.create(self.path, client_id, BY)

    async def ran(self, workspace: Workspace) -> tuple[str, str]:
        """Run one prompt to its end; the ids of its session and of the run."""
        session = await workspace.create_session("", BY)
        accepted = await workspace.prompt(Prompt(session_id=session.id, prompt="go"), BY)
        await self.idle(workspace)
        return session.id, accepted.run_id

    async def prompted(self, workspace: Workspace, prompt: str = "root") -> tuple[str, str]:
        """A new session with one prompt: the ids of both."""
        session = await workspace.create_session("", BY)
        accepted = await workspace.prompt(Prompt(session.id, prompt), BY)
        return session.id, accepted.run_id

    async def ends(self, workspace: Workspace) -> list[tuple[str, str]]:
        """The prompt and the state of every run that ended, in the order in which that was told."""
        runs = [msgspec.json.decode(row.body, type=Run) for row in await self.facts(workspace, "run")]
        return [(run.prompt, run.state) for run in runs if run.is_terminal]

    async def idle(self, workspace: Workspace) -> None:
        """Wait until no run is going on, and all of it is on disk."""
        async with asyncio.timeout(20):
            while workspace.is_busy:
                await workspace.log.changed(asyncio.get_running_loop().create_future())
            await workspace.log.durable(workspace.log.head)

    async def facts(self, workspace: Workspace, kind: str) -> list[FactRow]:
        """What is on disk of this kind, in order."""
        rows: Any = await self.journal.read(view.facts, workspace.id, 0, workspace.log.published)
        return [row for row in rows if row.kind == kind]
