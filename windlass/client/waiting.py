"""Waiting for runs to end, whether they end now, ended long ago, or the server restarts in between.

Everyone who waits on a workspace shares one stream: a hundred runs awaited at once cost one connection, and the server
allows a client only a few (STREAMS_PER_CLIENT).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from windlass import limits
from windlass.client.errors import RunFailed, ServerUnreachable
from windlass.client.events import StreamEvent
from windlass.client.stream import PASSING
from windlass.client.transport import backoff
from windlass.errors import WindlassError
from windlass.wire.runs import Run, RunState, Usage

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle


class RunResult(msgspec.Struct, frozen=True):
    """How a run ended. `text` is the answer: what the last assistant message of the run says."""

    run_id: str
    session_id: str
    state: RunState
    text: str
    error: str
    usage: Usage
    cost: float

    @property
    def completed(self) -> bool:
        return self.state == "completed"

    def raise_for_state(self) -> "RunResult":
        """Itself when the run completed, so that it can be chained; raises RunFailed otherwise."""
        if not self.completed:
            raise RunFailed(self.run_id, self.state, self.error)
        return self


class Endings:
    """The ends of a workspace's runs, for everyone who waits for one. The stream is there while anyone does."""

    def __init__(self, workspace: "WorkspaceHandle", give_up_after: float | None = None) -> None:
        self._workspace = workspace
        self._give_up_after = give_up_after
        # By run: how each of its waiters is told. None says "ask over REST": it is over, or may be.
        self._waiters: dict[str, list[asyncio.Future[str | None]]] = {}
        self._waiting = 0
        self._stream: asyncio.Task[None] | None = None

    async def wait(self, run_id: str) -> RunResult:
        """Return when the run is over. Raises NotFound for an unknown run, at once; ServerUnreachable (or the like) for
        a server that cannot be asked for CLIENT_GIVE_UP_SECONDS, or `give_up_after`."""
        async with self._streaming():
            answer: str | None = None
            away = _Away(limits.CLIENT_GIVE_UP_SECONDS if self._give_up_after is None else self._give_up_after)
            while True:
                # Listening first, then asking: an end in between is heard.
                end = self._listen(run_id)
                try:
                    result = await self._ended(run_id, answer, away)
                    if result is not None:
                        return result
                    if not away.attempts:
                        answer = await end
                    elif end in (await asyncio.wait({end}, timeout=backoff(away.attempts)))[0]:
                        answer = end.result()
                finally:
                    self._leave(run_id, end)

    async def _ended(self, run_id: str, answer: str | None, away: "_Away") -> RunResult | None:
        """How the run ended; None when it goes on, or when nobody could be asked."""
        try:
            run = await self._workspace.run(run_id)
            result = await _result(self._workspace, run, answer) if run.is_terminal else None
        except PASSING as error:
            away.note(error)  # a restart in this very moment must not cost the answer
            return None
        away.attempts = 0
        return result

    @asynccontextmanager
    async def _streaming(self) -> AsyncIterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting and self._stream is not None:
                stream, self._stream = self._stream, None
                stream.cancel()
                await asyncio.wait({stream})

    async def _follow(self) -> None:
        problem: Exception = ServerUnreachable("The stream ended before the run did.")
        try:
            async with aclosing(self._workspace.events(give_up_after=self._give_up_after)) as events:
                async for event in events:
                    self._take(event)
        except Exception as error:
            # This task's border: whatever it is, those who wait have to hear of it, or they would wait for ever.
            problem = error
        self._stream = None  # the next one to listen tries anew
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(problem)

    def _take(self, event: StreamEvent) -> None:
        if event.kind == "run_complete":
            text = event.payload.get("text")
            self._tell(str(event.payload.get("run_id", "")), text if isinstance(text, str) else None)
        elif event.kind == "reset":
            for run_id in self._waiters:
                self._tell(run_id, None)  # its end may be among what was trimmed before it was read
        elif event.kind == "hello":
            # What is not going on is over, perhaps since before this stream; its end may be among what is gone (B41).
            active = {run.get("id") for run in event.payload.get("runs", ()) if isinstance(run, dict)}
            for run_id in self._waiters.keys() - active:
                self._tell(run_id, None)

    def _tell(self, run_id: str, text: str | None) -> None:
        for waiter in self._waiters.get(run_id, ()):
            if not waiter.done():
                waiter.set_result(text)

    def _listen(self, run_id: str) -> "asyncio.Future[str | None]":
        if self._stream is None:
            self._stream = asyncio.create_task(self._follow(), name="windlass: ends of runs")
        waiter: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run_id, []).append(waiter)
        return waiter

    def _leave(self, run_id: str, waiter: "asyncio.Future[str | None]") -> None:
        waiters = self._waiters[run_id]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[run_id]
        # A failure that nobody awaited (the run was over meanwhile) must not be reported as forgotten.
        if waiter.done() and not waiter.cancelled():
            waiter.exception()


class _Away:
    """How often in a row, and since when, the server could not be asked."""

    def __init__(self, give_up_after: float) -> None:
        self.attempts = 0
        self._give_up_after = give_up_after
        self._since = 0.0

    def note(self, error: WindlassError) -> None:
        """Count a failure; raises it when that has gone on for too long."""
        now = asyncio.get_running_loop().time()
        self._since = self._since if self.attempts else now
        self.attempts += 1
        if now - self._since >= self._give_up_after:
            raise error


async def _result(workspace: "WorkspaceHandle", run: Run, text: str | None) -> RunResult:
    return RunResult(
        run_id=run.id,
        session_id=run.session_id,
        state=run.state,
        text=await answer_of(workspace, run) if text is None else text,
        error=run.error,
        usage=run.usage,
        cost=run.cost,
    )


async def answer_of(workspace: "WorkspaceHandle", run: Run) -> str:
    """The text of the run's last assistant message, read over REST."""
    own = frozenset(run.message_ids)
    for message in reversed(await workspace.messages(run.session_id)):
        if message.id in own and message.role == "assistant":
            return message.text
    return ""
