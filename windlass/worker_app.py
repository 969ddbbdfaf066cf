"""The composition root of `windlass worker`: finds the executor, serves it, and ends the process.

It loads what the executor needs and nothing else: a worker is started for one assignment, and someone waits for it.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import select
import signal
import sys
import threading
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast

import msgspec
import structlog

from windlass import limits, logs
from windlass.errors import Invalid, WindlassError
from windlass.fleet.worker.executor_host import ExecutorFactory
from windlass.fleet.worker.serving import Mode
from windlass.fleet.worker.worker import Worker, WorkerAddress, WorkerOptions, new_event_loop
from windlass.server.private_files import write_private
from windlass.wire.worker import WorkerSpec

logger = structlog.get_logger("windlass.worker")


class WorkerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What `windlass worker` was asked for."""

    executor: str | None
    mode: Mode
    listen: str = "127.0.0.1:0"
    accept_timeout: float | None = None
    idle_timeout: float | None = None
    ready_file: Path | None = None
    spec_stdin: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None


def serve(command: WorkerCommand) -> int:
    """Run a worker until it leaves; returns the process's exit code: 2 when it was asked for what cannot work."""
    logs.configure(os.environ.get("WINDLASS_LOG", ""))
    # An executor that computes must give the interpreter to the links' thread soon: a cancel waits for it there.
    sys.setswitchinterval(limits.THREAD_SWITCH_SECONDS)
    runner = asyncio.Runner(loop_factory=new_event_loop)
    try:
        spec = read_spec(0) if command.spec_stdin else None
        code = runner.run(_serve(command, spec, find_executors(command, spec)))
    except (WindlassError, OSError) as error:
        print(f"windlass: {getattr(error, 'message', None) or error}", file=sys.stderr)
        code = 2
    if runner.run(_has_ended()):
        runner.close()
        return code
    # What a run left behind does not end, and waiting for it is what closing the loop would do, for ever.
    logs.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _serve(
    command: WorkerCommand, spec: WorkerSpec | None, executors: AbstractAsyncContextManager[ExecutorFactory]
) -> int:
    async with executors as factory:
        worker = Worker(_options(command, spec), factory)
        address = await worker.start()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not the loop's handlers: those would wait for an executor that blocks the loop.
            signal.signal(number, lambda *_: worker.stop())
        await asyncio.to_thread(_announce, command.ready_file, address)
        departure = await worker.left()
    if departure.code:
        print(f"windlass: {departure.reason}", file=sys.stderr)
    return departure.code


def _options(command: WorkerCommand, spec: WorkerSpec | None) -> WorkerOptions:
    if spec is not None and not spec.secret:
        raise Invalid("The spec's `secret` is empty. Give one that nobody can guess.")
    return WorkerOptions(
        mode=command.mode,
        listen=command.listen,
        tls_cert=command.tls_cert,
        tls_key=command.tls_key,
        accept_timeout=command.accept_timeout,
        idle_timeout=command.idle_timeout,
        secret="" if spec is None else spec.secret,
        workspace_path="" if spec is None else spec.workspace_path,
        parent_fd=None if spec is None else spec.parent_fd,
        owns_process=True,
    )


def _announce(ready_file: Path | None, address: WorkerAddress) -> None:
    if ready_file is None:
        print(address.url, flush=True)
    else:
        ready = {"url": address.url, "token": address.token, "pid": os.getpid()}
        write_private(ready_file, json.dumps(ready).encode() + b"\n")


async def _has_ended() -> bool:
    """Whether nothing is left that would keep this process from ending."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=limits.WORKER_SWEEP_SECONDS)
    return not left and all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())


# -- the document on standard input ------------------------------------------------------------------------------------


def read_spec(descriptor: int) -> WorkerSpec:
    """One JSON document, up to a newline after it or the end; raises Invalid when it is none, too large or too late."""
    deadline = time.monotonic() + limits.WORKER_SPEC_SECONDS
    read = bytearray()
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise Invalid(f"No spec came on standard input within {limits.WORKER_SPEC_SECONDS:g} s.")
        chunk = os.read(descriptor, 64 * limits.KIB)
        read += chunk
        if len(read) > limits.WORKER_SPEC_BYTES:
            raise Invalid(f"The spec on standard input has more than {limits.WORKER_SPEC_BYTES} bytes.")
        if not chunk or b"\n" in chunk:
            spec = _decode(bytes(read), is_all=not chunk)
            if spec is not None:
                return spec if spec.parent_fd is not None or not chunk else _with_life_line(spec, descriptor)


def _with_life_line(spec: WorkerSpec, descriptor: int) -> WorkerSpec:
    """Unless it says otherwise, a parent that keeps this pipe open after the document is watched through it (B59). One
    that closes it with the document (`echo ... | windlass worker`) has no more to say, and that is no death."""
    ready, _, _ = select.select([descriptor], [], [], limits.WORKER_LIFE_LINE_SECONDS)
    if ready and not os.read(descriptor, 64 * limits.KIB):
        return spec
    return msgspec.structs.replace(spec, parent_fd=descriptor)


def _decode(read: bytes, *, is_all: bool) -> WorkerSpec | None:
    """None: the rest of it is still to come."""
    try:
        return msgspec.json.decode(read, type=WorkerSpec)
    except msgspec.ValidationError as error:
        # Only where it is wrong, never what stands there: it may be a key.
        raise Invalid(f"The spec on standard input is wrong: {str(error).rpartition(' - ')[2]}.") from None
    except msgspec.DecodeError:
        if not is_all:
            return None
        raise Invalid("The spec on standard input is not one JSON document.") from None


# -- executors ---------------------------------------------------------------------------------------------------------


def find_executors(command: WorkerCommand, spec: WorkerSpec | None) -> AbstractAsyncContextManager[ExecutorFactory]:
    """What makes an executor for each run, with everything it needs behind it. Imports, so no loop may run yet."""
    name = command.executor or (spec.executor if spec is not None else "")
    if name == "echo":
        from windlass.fleet.worker.echo import EchoExecutor

        return contextlib.nullcontext(EchoExecutor)
    if name == "agent":
        from windlass.assembly import agent_executor_factory, default_worker_spec
        from windlass.config import ConfigError

        try:
            return agent_executor_factory(spec if spec is not None else default_worker_spec())
        except ConfigError as error:
            raise Invalid(str(error)) from None
    if ":" in name:
        return contextlib.nullcontext(load_executor(name))
    raise Invalid(f"There is no executor {name!r}. Say echo, agent, or module:Class.")


def load_executor(name: str) -> ExecutorFactory:
    """The class behind `module:Class`; the current directory is looked in too. Raises Invalid saying what is wrong."""
    module_name, _, class_name = name.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the border of the process: the module is somebody else's
        reason = f"{type(error).__name__}: {error}"
        raise Invalid(f"The executor's module {module_name} cannot be imported: {reason}.") from None
    found: Any = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise Invalid(f"{module_name} has no class {class_name}.")
    run = getattr(found, "run", None)
    if not inspect.iscoroutinefunction(run) or not _takes(run, 5):
        raise Invalid(f"{name} is no executor: it needs `async def run(self, spec, events, steer, cancel)`.")
    if not _takes(found, 0):
        raise Invalid(f"{name} cannot be made without arguments, and a worker makes one for each run.")
    return cast(ExecutorFactory, found)


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True  # a class whose signature cannot be looked at; the first run will tell
    return True
