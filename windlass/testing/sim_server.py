"""One simulated server process: the real registry, workspaces, runners and journal, over a writer that obeys a seed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from windlass.engine.context import Context
from windlass.engine.registry import Registry
from windlass.engine.workspace import Workspace
from windlass.errors import WindlassError
from windlass.journal.journal import Journal
from windlass.journal.log import Log, _StagedFact
from windlass.journal.records import FactRow
from windlass.journal.sqlite import SqliteBackend
from windlass.testing.history import Ask
from windlass.testing.seeded_writer import Crash, Fault, SeededWriter
from windlass.testing.sim_executor import SimExecutor
from windlass.testing.sim_work import SimRoot
from windlass.testing.sim_world import CONFIG, GRACES, World

Result = TypeVar("Result")
LEFT_POISONED = "left, its disk refused"
_POISONED_SECONDS = 0.15  # what a server whose disk refused has to tell everyone; then it is gone
_READ_SECONDS = 0.07  # the longest the disk takes to answer
_FILE_DELAYS = (0.0, 0.0, 0.01, 0.03)


class SimServer:
    """`resting`: clients begin nothing new. `stopping`: it was told to leave. `closed`: no request reaches it."""

    def __init__(self, world: World, fault: Fault | None) -> None:
        self.world = world
        self.resting = False
        self.stopping = False
        self.closed = False
        self.poisoned = False
        self.on_idle: Callable[[], None] = lambda: None
        self._rng = random.Random(f"{world.seed} server {world.history.life}")
        self.backend = SqliteBackend(world.database)
        self.writer = SeededWriter(self.backend, self._rng, world.history.committed, fault)
        self.journal = SimJournal(self)
        context = Context(
            self.journal,
            world.clock,
            CONFIG,
            lambda workspace, config, session_id: SimExecutor(world),
            GRACES,
            world.new_id,
            self._in_thread,
            open_root=lambda path: SimRoot(world, path),
        )
        self.registry = Registry(context, str(world.data_dir), lambda: self.on_idle())

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        await asyncio.sleep(self._rng.choice(_FILE_DELAYS))
        return function(*arguments)

    def workspace(self, path: str) -> Workspace | None:
        """The open workspace of a path, as a client that remembers its id would find it."""
        return next((workspace for workspace in self.registry.workspaces if workspace.path == path), None)

    @property
    def is_leaving(self) -> bool:
        """Whether it may close what clients hold: it was told to go, or cannot go on."""
        return self.stopping or self.closed or self.poisoned

    async def ask(
        self,
        client_id: str,
        kind: str,
        arguments: dict[str, Any],
        call: Callable[[], Awaitable[Result]],
        patience: float | None = None,
    ) -> Ask:
        """A request, from the asking to the answer. With `patience` the client hangs up after that many seconds."""
        history = self.world.history
        ask = history.asked(client_id, kind, arguments)
        try:
            async with asyncio.timeout(patience):
                ask.answer = await call()
        except WindlassError as refusal:
            ask.refusal = f"{type(refusal).__name__}: {refusal.message}"
            history.answered(ask, "refused")
        except TimeoutError:
            history.answered(ask, "given up")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            history.violate("B02", f"{ask} was cancelled by another request")
            history.answered(ask, "given up")
        else:
            history.answered(ask, "answered")
        return ask

    def on_poison(self, reason: str) -> None:
        self.poisoned = True
        self.world.history.poisoned.add(self.world.history.life)
        self.world.history.place(f"server   poisoned: {reason}")
        if not self.writer.fault_happened:
            self.world.history.violate("I12", f"the disk was fine, and a commit failed: {reason}")
        asyncio.get_running_loop().call_later(_POISONED_SECONDS, self.die, LEFT_POISONED)

    def die(self, how: str) -> None:
        """Raised from a callback, it ends the loop on the spot."""
        if not self.closed:
            raise Crash(how)

    def check_still_told(self) -> None:
        """A server whose disk refused tells everyone who waits for the disk before it is gone."""
        for ask in self.world.history.asks:
            waits = ask.kind in ("prompt", "cancel", "cancel_run", "answer", "create_session")
            if ask.status == "pending" and waits and ask.asked_time < self.world.history.time() - _READ_SECONDS:
                self.world.history.violate("I12", f"the disk refused, and nobody told {ask}")

    @property
    def open_runs(self) -> bool:
        """Whether a run on disk is not over."""
        return any(ledger.open_runs for ledger in self.world.history.ledgers.values())


class SimJournal(Journal):
    """The journal, with an eye on the moment a workspace is let go."""

    def __init__(self, server: SimServer) -> None:
        super().__init__(server.writer, server.world.clock, server.on_poison)
        self._server = server

    def close_log(self, log: Log) -> None:
        server = self._server
        history = server.world.history
        history.place(f"server   closes {log.workspace_id}")
        ending = {entry.row.run for entry in log._pending if isinstance(entry, _StagedFact) and _is_end(entry.row)}
        runs = set(history.ledgers[log.workspace_id].open_runs) - ending
        if runs and not server.is_leaving:
            history.violate("I17", f"{log.workspace_id} was closed under its runs {runs}")
        super().close_log(log)


def _is_end(row: FactRow) -> bool:
    return row.kind == "run_complete"
