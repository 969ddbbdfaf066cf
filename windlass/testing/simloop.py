"""An asyncio loop for simulations: time is virtual, the order of callbacks comes from a seed, and both can be replayed.

Nothing ever waits: when no callback is runnable, `time()` jumps to the next timer, so an hour passes in a millisecond.
With `shuffle=False` callbacks run in the order of `call_soon`, as asyncio promises. With `shuffle=True` the next one is
drawn from all that are runnable: code whose correctness rests on more order than it asked for fails for some seed. The
same seed gives the same run, and `trace` (a hash of what ran, and when) proves it.

There are no sockets, processes, signals or other threads in here: whatever needs them is replaced by the simulation.

    simulation = simulate(scenario, seed=7, shuffle=True)
    assert simulation.leaked == []
"""

import asyncio
import functools
import hashlib
import heapq
import math
import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Generic, NamedTuple, TypeVar, TypeVarTuple

from windlass import limits

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
TICKS_PER_SECOND = round(1 / limits.SIM_TICK_SECONDS)


_LAST_ROUNDS = 5  # of closing what does not end: an end that starts another is rare, one that starts that is a bug


class SimDeadlock(Exception):
    """Nothing is runnable and no timer is set: whatever is waited for can never happen."""


class SimRunaway(Exception):
    """More callbacks ran than any sane scenario needs: something spins."""


class Simulation(NamedTuple, Generic[T]):
    """What a run of the loop gave: `leaked` names the tasks that were still pending when the scenario returned."""

    result: T
    trace: str
    leaked: list[str]
    seconds: float
    callbacks: int


def run(main: Callable[[], Coroutine[Any, Any, T]], seed: int, shuffle: bool = True) -> tuple[T, str]:
    """Run `main()` to its end; returns its result and the trace's hash. Tasks left behind are cancelled silently."""
    simulation = simulate(main, seed, shuffle)
    return simulation.result, simulation.trace


def simulate(
    main: Callable[[], Coroutine[Any, Any, T]],
    seed: int,
    shuffle: bool = True,
    callbacks: int = limits.SIM_CALLBACKS,
) -> Simulation[T]:
    """Run `main()` to its end on a loop of its own.

    Raises what `main` raises; else what a callback or a task raised and nobody looked at (several as one group); else
    SimDeadlock or SimRunaway.
    """
    loop = SimLoop(seed, shuffle, callbacks)
    try:
        try:
            result = loop.run_until_complete(main())
        except BaseException as problem:
            loop.cancel_pending()
            for other in loop.unhandled():
                problem.add_note(f"Also unhandled: {other!r}")
            raise
        simulation = Simulation(result, loop.trace, loop.pending(), loop.time(), loop.callbacks)
        loop.cancel_pending()
        _raise(loop.unhandled())
        return simulation
    finally:
        loop.close()


def _raise(problems: list[BaseException]) -> None:
    if len(problems) > 1:
        raise BaseExceptionGroup("unhandled in the simulation", problems)
    if problems:
        raise problems[0]


class SimLoop(asyncio.BaseEventLoop):
    """The loop itself. `simulate` is the usual way to use one."""

    # Of the base class: its type stubs leave these out.
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _thread_id: int | None

    def __init__(self, seed: int, shuffle: bool = True, callbacks: int = limits.SIM_CALLBACKS) -> None:
        super().__init__()
        self.callbacks = 0
        self._most_callbacks = callbacks
        self._random = random.Random(seed) if shuffle else None
        self._ticks = 0
        self._hash = hashlib.sha256()
        self._problems: list[BaseException] = []
        self._given_up: set[asyncio.Task[Any]] = set()
        self._tasks_made = 0
        self._tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
        self.set_exception_handler(_note_problem)

    @property
    def trace(self) -> str:
        return self._hash.hexdigest()

    def time(self) -> float:
        return self._ticks / TICKS_PER_SECOND

    def note_problem(self, problem: BaseException) -> None:
        self._problems.append(problem)

    # -- what is still there at the end -------------------------------------------------------------------------------

    def pending(self) -> list[str]:
        return [_describe(task) for task in self._in_order() if not task.done()]

    def unhandled(self) -> list[BaseException]:
        """What callbacks and tasks raised and nobody looked at."""
        for task in self._in_order():
            # asyncio tells of such a task when it is collected, which may be never here: it can sit in a cycle.
            if task.done() and not task.cancelled() and getattr(task, "_log_traceback", False):
                problem = task.exception()
                if problem is not None:
                    self._problems.append(problem)
        return self._problems

    def cancel_pending(self) -> None:
        """Cancel what is still pending, and run until it is gone or is seen not to go."""
        self._most_callbacks = self.callbacks + limits.SIM_CALLBACKS
        try:
            self._cancel_and_run([task for task in self._in_order() if not task.done()])
            self.run_until_complete(self.shutdown_asyncgens())
        except (SimDeadlock, SimRunaway) as problem:
            self._problems.append(problem)
        self._problems += self.close_left()

    def close_left(self) -> list[Exception]:
        """Close what does not go by itself: the collector would do it at some later moment, and blame another test.

        Returns what they said on their way.
        """
        said: list[Exception] = []
        for _ in range(_LAST_ROUNDS):  # the end of one may start another, which must not be left either
            for task in [task for task in self._in_order() if not task.done() and task not in self._given_up]:
                said += self._close_task(task)
        return said

    def _cancel_and_run(self, tasks: list[asyncio.Task[Any]]) -> None:
        left = set(tasks)

        def ended(task: asyncio.Task[Any]) -> None:
            left.discard(task)
            if not left:
                self.stop()

        for task in tasks:
            task.add_done_callback(ended)
            task.cancel("the simulation is over")
        if tasks:
            self.run_forever()

    def _close_task(self, task: asyncio.Task[Any]) -> list[Exception]:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._given_up.add(task)
        said: list[Exception] = []
        asyncio._set_running_loop(self)  # what a `finally` starts, it starts here: else it is never closed
        try:
            for _ in range(_LAST_ROUNDS):  # one that awaits on its way out has to be told again
                try:
                    task.get_coro().close()
                    break
                except Exception as problem:  # the border of that task: whatever it says, the others are closed too
                    said.append(problem)
        finally:
            asyncio._set_running_loop(None)
        return said

    def _in_order(self) -> list[asyncio.Task[Any]]:
        """The tasks that still exist, oldest first: a set's order is made of addresses and differs in every process."""
        return sorted(self._tasks, key=lambda task: self._tasks[task])

    # -- the base class's hooks ---------------------------------------------------------------------------------------

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        # asyncio numbers tasks for the whole process; with that number in the trace no two runs would be equal.
        self._tasks_made += 1
        task = super().create_task(coro, name=name or f"task-{self._tasks_made}", context=context)
        self._tasks[task] = self._tasks_made
        return task

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        # Rounded up, so that timers collide: races between two timers are only found when both are due at once.
        # The inner round takes away what 0.1 + 0.2 has too much.
        ticks = math.ceil(round(when * TICKS_PER_SECOND, 6))
        return super().call_at(ticks / TICKS_PER_SECOND, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if self._thread_id not in (None, threading.get_ident()):
            raise RuntimeError("another thread called into the simulation: its timing could not be replayed")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """No threads: the function runs on the loop, as one callback of its own, some time later."""
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(_call_into, future, functools.partial(func, *args))
        return future

    def _run_once(self) -> None:
        """One round: what is runnable now, each callback once. Replaces the base class's wait for real time and I/O."""
        while self._scheduled and self._scheduled[0].cancelled():
            self._pop_timer()
        if not self._ready and not self._stopping:
            if not self._scheduled:
                waiting = "; ".join(self.pending()) or "no task"
                raise SimDeadlock(f"nothing is runnable and no timer is set at {self.time()} s. Waiting: {waiting}")
            self._ticks = max(self._ticks, round(self._scheduled[0].when() * TICKS_PER_SECOND))
        while self._scheduled and self._scheduled[0].when() <= self.time():
            self._ready.append(self._pop_timer())
        for _ in range(len(self._ready)):
            self._run_one()

    def _pop_timer(self) -> asyncio.TimerHandle:
        timer = heapq.heappop(self._scheduled)
        timer._scheduled = False  # type: ignore[attr-defined]  # else its cancel() is counted as one still in the heap
        return timer

    def _run_one(self) -> None:
        if self.callbacks >= self._most_callbacks:
            # Raised before a handle is taken: a task whose next step is lost could not even be cancelled afterwards.
            raise SimRunaway(f"{self.callbacks} callbacks at {self.time()} s. Pending: {'; '.join(self.pending())}")
        if self._random is not None:
            self._ready.rotate(-self._random.randrange(len(self._ready)))
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        self.callbacks += 1
        self._hash.update(f"{self._ticks} {_label(handle)}\n".encode())
        handle._run()

    def _write_to_self(self) -> None:
        """Nothing sleeps in a selector, so there is nothing to wake."""


def _note_problem(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, SimLoop)
    loop.note_problem(context.get("exception") or RuntimeError(context["message"]))


def _call_into(future: asyncio.Future[T], function: Callable[[], T]) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(function())
    except Exception as problem:  # the border of the task that asked: it gets what its function raised
        future.set_exception(problem)


def _label(handle: asyncio.Handle) -> str:
    """A name without addresses: the task whose step this is, or the function."""
    callback = handle._callback  # type: ignore[attr-defined]
    while isinstance(callback, functools.partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return getattr(callback, "__qualname__", type(callback).__name__)


def _describe(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return f"{task.get_name()} ({getattr(coroutine, '__qualname__', type(coroutine).__name__)})"
