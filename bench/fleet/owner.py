"""The owner of runs that costs nothing: no journal, no people. What is left is the worker and the link to it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable
from typing import NoReturn

from bench.child import ROOT
from windlass.fleet.pool.pool import Pool, PoolLimits
from windlass.guardian.handle import Guardian
from windlass.ids import new_id
from windlass.wire.delegation import OwnerReply, OwnerRequest
from windlass.wire.execution import Executor, PermissionAsk, RunOutcome, RunSpec, SteerMessage, Verdict
from windlass.wire.messages import text_message
from windlass.wire.run_events import Delta, RunEvent

# All that a worker sees of ours: where commands are, and where the executor of the bench is.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
_RUN_SECONDS = 60.0


class Owner:
    """One run. It notes when events come, commits them at once, and never steers or cancels."""

    def __init__(self, prompt: str, workspace_path: str = "/", model: str = "") -> None:
        session = new_id("ses")
        said = text_message(
            id=new_id("msg"),
            role="user",
            session_id=session,
            text=prompt,
            model="",
            provider="",
            created_at=1,
            updated_at=1,
        )
        self.spec = RunSpec(new_id("run"), session, session, workspace_path, prompt, [said], model=model)
        self.events = 0
        self.began_at = 0.0
        self.first_at = 0.0  # the first event of any kind
        self.first_text_at = 0.0
        self.last_at = 0.0

    async def run(self, executor: Executor) -> RunOutcome:
        """Raises when it does not complete: there would be nothing to measure."""
        self.began_at = time.monotonic()
        async with asyncio.timeout(_RUN_SECONDS):
            outcome = await executor.run(self.spec, self, _Silence(), _Never())
        if outcome.status != "completed":
            raise RuntimeError(f"the run {outcome.status}: {outcome.error}")
        return outcome

    # -- Events -------------------------------------------------------------------------------------------------------

    def emit(self, event: RunEvent) -> None:
        self.last_at = time.monotonic()
        self.events += 1
        self.first_at = self.first_at or self.last_at
        if isinstance(event, Delta):
            self.first_text_at = self.first_text_at or self.last_at

    def durable(self, event: RunEvent) -> Awaitable[None]:
        self.emit(event)
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        committed.set_result(None)
        return committed

    async def approve(self, ask: PermissionAsk) -> Verdict:
        return "granted"

    async def delegate(self, request: OwnerRequest) -> OwnerReply:
        return OwnerReply(error="There are no agents in the bench.")


class _Silence:
    """Steer: nobody says anything."""

    def take(self) -> list[SteerMessage]:
        return []

    async def next(self) -> NoReturn:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody ends this wait but a cancel")

    async def withdrawn(self) -> NoReturn:
        await self.next()


class _Never:
    """Cancel: nobody stops it."""

    requested = False

    async def wait(self) -> None:
        await asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def guarded() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    try:
        yield guardian
    finally:
        await guardian.aclose()


@contextlib.asynccontextmanager
async def pool(guardian: Guardian, *, uses: int) -> AsyncIterator[Pool]:
    """`uses`: runs of one worker; 1 makes every run wait for the start of its own."""
    workers = Pool(guardian, ENVIRONMENT, PoolLimits(uses=uses))
    try:
        yield workers
    finally:
        await workers.aclose()
