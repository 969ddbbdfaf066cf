"""The parent's side of a link: an executor whose runs are executed by a worker at the other end (B51-B58, B73)."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, NoReturn, TypeVar

from windlass import limits
from windlass.fleet.parent.link_errors import GaveUp, LinkError, LinkLost
from windlass.fleet.parent.plain_run import PlainRun
from windlass.fleet.parent.remote_run import RemoteRun
from windlass.fleet.parent.worker_socket import WorkerSocket, connect, encoded
from windlass.ids import new_id
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.frames import TerminalFrame

T = TypeVar("T")


class RemoteExecutor:
    """Runs at the worker behind `url`, whichever dialect it speaks. Each run has a connection of its own.

    `workspace_path` is the workspace's directory as the worker's machine knows it, if that is another one. `on_lost` is
    called when a worker was left with a run that it did not end: whoever started it should end it.
    """

    def __init__(
        self,
        url: str,
        secret: str = "",
        *,
        ssl: ssl.SSLContext | None = None,
        workspace_path: str = "",
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._secret = secret
        self._ssl = ssl
        self._workspace_path = workspace_path
        self._on_lost = on_lost

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        """Execute the run. A cancel is told to the worker, which has STOP_ASK_SECONDS to end it."""
        try:
            socket = await unless_cancelled(cancel, connect(self._url, self._secret, self._ssl), WorkerSocket.abort)
        except LinkError as error:
            return RunOutcome("failed", str(error))
        if socket is None:
            return RunOutcome("canceled")
        drive = Drive(socket, spec, events, steer, cancel, workspace_path=self._workspace_path)
        try:
            return await drive.run()
        finally:
            if not drive.is_over and self._on_lost is not None:
                self._on_lost()


async def unless_cancelled(
    cancel: Cancel, work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]
) -> T | None:
    """What `work` returns; None, and `work` is cancelled, when the run is to stop before that.

    What it returned in the very moment of a cancel is undone: nobody else could.
    """
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(cancel.wait())
    cancelled: asyncio.CancelledError | None = None
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            return working.result()
    except asyncio.CancelledError as error:
        cancelled = error
    finally:
        stopping.cancel()
    await surely(_undone(working, undo))
    if cancelled is not None:
        raise cancelled
    return None


async def surely(work: Coroutine[Any, Any, None]) -> None:
    """Carry it out to its end, however often whoever waits for it is cancelled: a token is mostly followed by a cancel
    of the task, and that must not leave half of it undone."""
    task = asyncio.create_task(work)
    _under_way.add(task)  # asyncio itself keeps no task alive
    task.add_done_callback(_under_way.discard)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


_under_way: set["asyncio.Task[None]"] = set()


async def _undone(working: "asyncio.Future[T]", undo: Callable[[T], Awaitable[None]]) -> None:
    await end_tasks([working])
    if not working.cancelled() and working.exception() is None:
        await undo(working.result())


async def end_tasks(tasks: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel them and return when they are over. What they raise is not asked for any more."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


class Drive:
    """One run over one connection, which is closed with it.

    `is_over`: the worker ended the run. `is_clean`: it said goodbye too, so that it can be given another run.
    """

    def __init__(
        self,
        socket: WorkerSocket,
        spec: RunSpec,
        events: Events,
        steer: Steer,
        cancel: Cancel,
        *,
        workspace_path: str = "",
        attempt: int = 1,
    ) -> None:
        self._socket = socket
        self._cancel = cancel
        self._stopping = asyncio.Event()
        if socket.is_plain:
            self._run: RemoteRun = PlainRun(socket, spec, events, steer, partial(new_id, "msg"))
        else:
            self._run = RemoteRun(socket, spec, events, steer, attempt=attempt, workspace_path=workspace_path)
        self.is_over = False
        self.is_clean = False

    async def run(self) -> RunOutcome:
        """How it ended, when nothing of it is going on here any more.

        Cancelling this asks the worker to stop; cancelling it again gives the worker up. Either way CancelledError goes
        on to the caller, after the end.
        """
        task = asyncio.create_task(self._carry_out(), name="link")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._stopping.set()
            await self._end(task)
            raise

    async def _end(self, task: "asyncio.Task[RunOutcome]") -> None:
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            self._socket.drop()
            await end_tasks([task])
            raise
        if not task.cancelled():
            task.exception()

    async def _carry_out(self) -> RunOutcome:
        try:
            terminal = await self._terminal()
        except GaveUp as error:
            return RunOutcome("canceled", str(error))
        except LinkLost as error:
            return RunOutcome("interrupted", f"{error} Send the prompt again to go on.")
        except LinkError as error:
            return RunOutcome("failed", str(error))
        self.is_clean = await self._socket.close()
        return _outcome(terminal)

    async def _terminal(self) -> TerminalFrame:
        """The worker's own end of the run. Whatever else happens ends it by raising."""
        run = self._run
        try:
            opening = encoded(run.opening())
        except (TypeError, ValueError) as error:
            await self._socket.abort()
            raise LinkError(f"The conversation cannot be sent to a worker: {error}.") from None
        if len(opening) > limits.LINK_FRAME_BYTES:
            await self._socket.abort()
            self.is_over = True
            raise LinkError("The conversation is too large to be sent to a worker. Begin a new session.")
        reading = asyncio.create_task(run.read(opening), name="link reader")
        others: list[asyncio.Task[NoReturn]] = [
            asyncio.create_task(self._stop_when_asked(), name="link stop"),
            asyncio.create_task(self._socket.watch(), name="link watch"),
            asyncio.create_task(run.hand_on_steering(), name="link steering"),
            asyncio.create_task(run.hand_on_withdrawals(), name="link withdrawals"),
            asyncio.create_task(run.acks.keep_sending(), name="link acks"),
        ]
        try:
            await asyncio.wait({reading, *others}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                next(task for task in others if task.done()).result()
            terminal = reading.result()
            self.is_over = True
            return terminal
        finally:
            if not self.is_over:
                self._socket.drop()
            await end_tasks([reading, *others])
            await run.asks.end()
            await run.acks.end()
            if not self.is_over:
                await self._socket.abort()

    async def _stop_when_asked(self) -> NoReturn:
        """Tell the worker when the run is to stop; raises GaveUp when it did not stop in its time."""
        asked = [asyncio.ensure_future(self._cancel.wait()), asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks(asked)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.STOP_ASK_SECONDS):
                await self._socket.send(self._run.cancelling())
                await asyncio.Event().wait()
        raise GaveUp(f"The worker did not stop within {limits.STOP_ASK_SECONDS:g} seconds and was given up.")


def _outcome(terminal: TerminalFrame) -> RunOutcome:
    result, said = terminal.result or "", (terminal.error or "")[: limits.WORKER_ERROR_CHARACTERS]
    match terminal.status:
        case "completed":
            return RunOutcome("completed", result=result, transcript=terminal.transcript)
        case "cancelled":
            return RunOutcome("canceled", said, result, terminal.transcript)
        case "error":
            error = said or "The worker ended the run with an error and did not say which."
            return RunOutcome("failed", error, result, terminal.transcript)
