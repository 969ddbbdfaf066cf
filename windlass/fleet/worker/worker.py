"""A worker: serves an executor over links. `await serve_worker(WorkerOptions(...), MyExecutor)` is all it takes.

Two threads. Executors run on the event loop that calls `serve_worker`; links, clocks and the watch over the parent have
a loop and a thread of their own. So an executor that blocks or computes keeps nobody from cancelling it, other links
are answered, and a worker whose parent is gone ends, whatever its executor is doing (B58 B59).
"""

import asyncio
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from windlass import limits
from windlass.fleet.worker.executor_host import ExecutorFactory, ExecutorHost
from windlass.fleet.worker.handshake import Door
from windlass.fleet.worker.listening import bind, parse_address, tls_context
from windlass.fleet.worker.parent_watch import watch_parent
from windlass.fleet.worker.serving import Departure, Mode, Serving

logger = structlog.get_logger("windlass.worker")


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker serves.

    `secret` "": one is made. `accept_timeout` is for mode one, `idle_timeout` for mode reusable, in seconds; None waits
    for ever. `workspace_path`: where the workspace is on this machine, if a run's own path is not to be used.
    `parent_fd`: a descriptor whose end means that the parent is gone. `owns_process`: nothing else runs in this
    process, so it may be tidied between assignments, and ended when it does not end by itself.
    """

    mode: Mode = "one"
    listen: str = "127.0.0.1:0"
    tls_cert: Path | None = None
    tls_key: Path | None = None
    accept_timeout: float | None = None
    idle_timeout: float | None = None
    secret: str = ""
    workspace_path: str = ""
    parent_fd: int | None = None
    owns_process: bool = False

    def __repr__(self) -> str:
        return f"WorkerOptions(mode={self.mode!r}, listen={self.listen!r})"  # without its secret


class WorkerAddress(msgspec.Struct, frozen=True):
    """Where a worker is: `url` holds the secret as its path, `token` is the secret alone."""

    url: str
    token: str

    def __repr__(self) -> str:
        return "WorkerAddress(...)"  # all of it is secret


async def serve_worker(
    options: WorkerOptions, executor_factory: ExecutorFactory, on_ready: Callable[[WorkerAddress], None] | None = None
) -> int:
    """Serve until the mode says that it is over; returns the exit code: 0, or 1 when nobody came in time.

    `executor_factory` makes an executor for each run; a class will do. `on_ready` is told the address once connections
    are accepted. Cancelling the caller stops the runs and leaves. Raises Invalid for options that cannot work.
    """
    worker = Worker(options, executor_factory)
    address = await worker.start()
    if on_ready is not None:
        on_ready(address)
    return (await worker.left()).code


class Worker:
    """One worker, from its start to its end. Made on the executors' loop; `stop` may be called from anywhere."""

    def __init__(self, options: WorkerOptions, executor_factory: ExecutorFactory) -> None:
        self._options = options
        self._factory = executor_factory
        self._secret = options.secret or secrets.token_urlsafe(32)
        self._loop = asyncio.get_running_loop()
        self._listening: asyncio.Future[str] = self._loop.create_future()
        self._left: asyncio.Future[Departure] = self._loop.create_future()
        self._link_loop: asyncio.AbstractEventLoop | None = None
        self._serving: Serving | None = None
        self._stops = False

    async def start(self) -> WorkerAddress:
        """Returns when connections are accepted."""
        thread = threading.Thread(target=self._run_thread, name="windlass links", daemon=True)
        thread.start()
        try:
            url = await asyncio.shield(self._listening)
        except asyncio.CancelledError:
            await self._leave_early()
            raise
        return WorkerAddress(url, self._secret)

    async def left(self) -> Departure:
        """Wait until it has left. Cancelled, it leaves first."""
        try:
            return await asyncio.shield(self._left)
        except asyncio.CancelledError:
            await self._leave_early()
            raise

    def stop(self, reason: str = "told to stop") -> None:
        """Stop the runs, send their terminals, and leave, within a bound."""
        self._stops = True  # first this: the links' thread may be just about to begin
        self._post(self._leave, 0, reason)

    async def _leave_early(self) -> None:
        self.stop("its owner was cancelled")
        await asyncio.wait({self._left})

    # -- the links' thread --------------------------------------------------------------------------------------------

    def _run_thread(self) -> None:
        code = 1
        try:
            departure = self._serve_links()
            code = departure.code
            self._tell(_settle, self._left, departure)
        except Exception as error:  # the border of a thread: whoever waits must hear of it
            if self._listening.done():
                logger.critical("the links' thread failed", exc_info=error)
            self._tell(_fail, self._listening, error)
            self._tell(_settle, self._left, Departure(1, f"{type(error).__name__}: {error}"))
        finally:
            if self._options.owns_process:
                # The process ends by itself when its main thread is done, and this thread with it. An executor that
                # blocks would keep it for ever; its parent has long been told that it is over.
                time.sleep(limits.WORKER_LAST_SECONDS)
                os._exit(code)

    def _serve_links(self) -> Departure:
        # All that blocks comes first, while no loop runs in this thread.
        options = self._options
        tls = tls_context(options.tls_cert, options.tls_key)
        address = parse_address(options.listen, tls=tls is not None)
        door = Door(self._secret)
        with bind(address) as bound, asyncio.Runner(loop_factory=new_event_loop) as runner:
            port = bound.getsockname()[1]
            door.listens_at(address.names, port)
            url = address.url(port, tls=tls is not None, path=door.path)
            return runner.run(self._serve(bound, door, tls, url))

    async def _serve(self, bound: socket.socket, door: Door, tls: ssl.SSLContext | None, url: str) -> Departure:
        options = self._options
        self._link_loop = asyncio.get_running_loop()
        is_alone = options.owns_process and options.mode == "reusable"
        self._serving = Serving(
            options.mode,
            bound,
            door,
            ExecutorHost(self._loop, self._factory, self._post, tidy=is_alone),
            tls=tls,
            patience_seconds=options.accept_timeout if options.mode == "one" else options.idle_timeout,
            workspace_path=options.workspace_path,
        )
        if self._stops:
            self._serving.leave(0, "told to stop")
        with watch_parent(options.parent_fd, self._parent_gone):
            return await self._serving.run(lambda: self._tell(_settle, self._listening, url))

    def _parent_gone(self) -> None:
        self._leave(1, "the parent is gone", limits.WORKER_ORPHAN_SECONDS)

    def _leave(self, *arguments: object) -> None:
        if self._serving is not None:
            self._serving.leave(*arguments)  # type: ignore[arg-type]

    # -- between the threads ------------------------------------------------------------------------------------------

    def _post(self, action: Callable[..., object], *arguments: object) -> None:
        """Have it called in the links' thread."""
        try:
            if self._link_loop is not None:
                self._link_loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:
            pass  # that loop is closed: the worker has left

    def _tell(self, action: Callable[..., object], *arguments: object) -> None:
        """Have it called on the executors' loop."""
        try:
            self._loop.call_soon_threadsafe(action, *arguments)
        except RuntimeError:
            pass  # that loop is closed: nobody waits any more


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # where it is not to be had, the standard loop serves
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _settle(future: "asyncio.Future[object]", value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[object]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
