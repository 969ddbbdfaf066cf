"""The executors' side of a worker: one task a run, on the loop they share, and the last word about each."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from windlass.fleet.worker.dialect import Said, encode, judged
from windlass.fleet.worker.run_ports import Post, RunPorts
from windlass.fleet.worker.surroundings import Surroundings
from windlass.wire.execution import Executor, RunOutcome, RunSpec

logger = structlog.get_logger("windlass.worker")

ExecutorFactory = Callable[[], Executor]


class Observer(Protocol):
    """The run, in the link's thread. `ended` is told once, `tidied` after it: False means that something is left."""

    def ended(self, said: Said) -> None: ...

    def tidied(self, is_clean: bool) -> None: ...


class ExecutorHost:
    """`post` carries calls to the link's thread, `tell` carries calls to the executors' loop.

    `tidy`: the process has one assignment at a time and nothing else in it; what a run leaves behind is cleared away.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, factory: ExecutorFactory, post: Post, *, tidy: bool) -> None:
        self.post = post
        self._loop = loop
        self._factory = factory
        self._tidy = tidy

    def tell(self, action: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:
            pass  # that loop is closed: the process is ending, and there is nobody left to tell

    def begin(self, spec: RunSpec, ports: RunPorts, observer: Observer) -> "Execution":
        """Called in the link's thread, like everything of an Execution that has no underscore."""
        execution = Execution(self, spec, ports, observer)
        self.tell(execution._begin)
        return execution


class Execution:
    """One run of one fresh executor."""

    def __init__(self, host: ExecutorHost, spec: RunSpec, ports: RunPorts, observer: Observer) -> None:
        self._host = host
        self._spec = spec
        self._ports = ports
        self._observer = observer
        self._task: asyncio.Task[RunOutcome] | None = None
        self._surroundings: Surroundings | None = None
        self._tidying: asyncio.Task[None] | None = None

    def abort(self) -> None:
        self._host.tell(self._abort)

    def abandon(self) -> None:
        """It does not end. Whenever it does, nothing is to be tidied: by then this process does something else."""
        self._host.tell(self._give_up)

    # -- on the executors' loop ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._host._tidy:
            self._surroundings = Surroundings()
        self._task = asyncio.create_task(self._run(), name=f"run {self._spec.run_id}")
        # The callback tells how it ended: a task that is cancelled before its first step never enters its `try`.
        self._task.add_done_callback(self._ended)

    async def _run(self) -> RunOutcome:
        if self._ports.cancel.requested:
            return RunOutcome("canceled")
        try:
            executor = self._host._factory()
            return await executor.run(self._spec, self._ports, self._ports.steer, self._ports.cancel)
        except (SystemExit, KeyboardInterrupt) as error:
            # An executor that leaves must not take the worker with it: the run has to be told as ended.
            raise RuntimeError(f"the executor tried to leave: {type(error).__name__}: {error}") from error

    def _abort(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _give_up(self) -> None:
        self._surroundings = None

    def _ended(self, task: "asyncio.Task[RunOutcome]") -> None:
        self._host.post(self._observer.ended, self._judge(task))
        if self._surroundings is None:
            self._host.post(self._observer.tidied, True)
        else:
            self._tidying = asyncio.create_task(self._tidy_up(self._surroundings), name="tidying up")

    async def _tidy_up(self, surroundings: Surroundings) -> None:
        is_clean = await surroundings.restore()
        self._host.post(self._observer.tidied, is_clean)

    def _judge(self, task: "asyncio.Task[RunOutcome]") -> Said:
        if task.cancelled():
            return Said("error", error="the executor stopped by itself")
        error = task.exception()
        if error is not None:
            logger.error("executor failed", run=self._spec.run_id, error=type(error).__name__, where=_where(error))
            return Said("error", error=_words(error))
        outcome = task.result()
        if not isinstance(outcome, RunOutcome):
            return Said("error", error=f"the executor returned {type(outcome).__name__} instead of a RunOutcome")
        try:
            return judged(outcome, b"" if outcome.transcript is None else encode(outcome.transcript))
        except (TypeError, ValueError, RecursionError) as unfit:
            return Said("error", outcome.result, f"the executor's transcript cannot be sent: {unfit}")


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the border of a task: the exception is somebody else's class, and its words may fail too
        return type(error).__name__


def _where(error: BaseException) -> str:
    """The line that raised it. Not the whole traceback: drawing it would read source files on the loop."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
