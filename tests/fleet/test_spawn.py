"""Worker processes of our own: told their secrets on stdin, found by what they print, and gone without a trace."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from tests.fleet.recorder import World
from windlass import limits
from windlass.fleet.parent.link import RemoteExecutor
from windlass.fleet.pool.spawn import WorkerFailed, WorkerProcess, spawn_worker
from windlass.guardian.handle import Guardian
from windlass.testing.processes import alive, descendants, marked
from windlass.wire.worker import AgentSpec, ProviderSpec, WorkerSpec

REPOSITORY = Path(__file__).parent.parent.parent
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}
ECHO = WorkerSpec(secret="", executor="echo")
DEEDS = WorkerSpec(secret="", executor="tests.fleet.deeds:Deeds")
NEVER_LISTENS = ("/bin/bash", "-c", "echo starting; exec sleep 3600")


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    yield guardian
    await guardian.aclose()


async def ask(worker: WorkerProcess, prompt: str) -> str:
    """What a run at this worker came to."""
    world = World(prompt)
    async with asyncio.timeout(20):
        outcome = await RemoteExecutor(worker.url, worker.secret).run(
            world.spec, world.events, world.steer, world.cancel
        )
    return outcome.result or outcome.error


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """For what nobody tells us of: processes that are not our children."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


# -- starting ---------------------------------------------------------------------------------------------------------


async def test_a_worker_is_started_and_serves_runs(guardian: Guardian) -> None:
    """B73: no run could be executed in a process of its own."""
    worker = await spawn_worker(guardian, ECHO, ENVIRONMENT)
    assert await ask(worker, "hello there") == "echo: hello there"
    assert await ask(worker, "once more") == "echo: once more"
    await worker.close()


def test_it_is_started_on_uvloop_too() -> None:
    """A server runs on uvloop, whose pipes are others than asyncio's."""

    async def story() -> str:
        guardian = await Guardian.start()
        try:
            worker = await spawn_worker(guardian, ECHO, ENVIRONMENT)
            said = await ask(worker, "hello")
            await worker.close()
            return said
        finally:
            # uvloop hangs in `close` when something is left open and warnings are errors.
            await guardian.aclose()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(story()) == "echo: hello"


async def test_no_secret_is_in_its_arguments_or_environment(guardian: Guardian) -> None:
    """A39: every process of the user could read the provider's key."""
    agent = AgentSpec(ProviderSpec("local", "openai", key="sk-canary-7f3a"))
    worker = await spawn_worker(guardian, WorkerSpec(secret="", executor="echo", agent=agent), ENVIRONMENT)
    seen = _shown_by(worker.pid)
    assert worker.secret.encode() not in seen
    assert b"sk-canary-7f3a" not in seen
    await worker.close()


def _shown_by(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


async def test_no_secret_is_in_the_log(guardian: Guardian, capfd: pytest.CaptureFixture[str]) -> None:
    """A39: a worker prints its address, which holds its secret, and what it prints goes into our log."""
    worker = await spawn_worker(guardian, ECHO, ENVIRONMENT)
    await ask(worker, "hello")
    await worker.close()
    said = capfd.readouterr()
    assert worker.secret not in said.out + said.err


async def test_a_large_spec_is_written_without_blocking(guardian: Guardian) -> None:
    """A pipe holds 64 KiB: instructions of a megabyte would stop the whole server until the worker reads."""
    agent = AgentSpec(ProviderSpec("local", "scripted"), instructions="x" * limits.MIB)
    worker = await spawn_worker(guardian, WorkerSpec(secret="", executor="echo", agent=agent), ENVIRONMENT)
    assert await ask(worker, "hello") == "echo: hello"
    await worker.close()


async def test_it_sees_only_the_environment_it_is_given(guardian: Guardian, monkeypatch: pytest.MonkeyPatch) -> None:
    """A30: a key in the server's environment would be every tool's."""
    monkeypatch.setenv("SOME_API_KEY", "canary")
    worker = await spawn_worker(guardian, DEEDS, ENVIRONMENT)
    names = set((await ask(worker, "environment")).split())
    assert names - {"LC_CTYPE"} == set(ENVIRONMENT)
    await worker.close()


# -- failing to start -------------------------------------------------------------------------------------------------


async def test_a_worker_that_dies_while_it_starts_says_why(guardian: Guardian) -> None:
    """A person would be told that something went wrong, and nothing else."""
    with pytest.raises(WorkerFailed, match=r"could not be started: it ended with exit code 2.*there_is_no_such_module"):
        await spawn_worker(guardian, WorkerSpec(secret="", executor="there_is_no_such_module:Class"), ENVIRONMENT)


async def test_a_worker_that_never_listens_is_not_waited_for(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run would wait for ever for a process that hangs in its start."""
    monkeypatch.setattr(limits, "WORKER_START_SECONDS", 0.3)
    with pytest.raises(WorkerFailed, match=r"did not listen within 0.3 seconds.*starting"):
        await spawn_worker(guardian, ECHO, ENVIRONMENT, program=NEVER_LISTENS)
    assert guardian.running == 0


async def test_a_program_that_does_not_exist_is_a_clear_error(guardian: Guardian) -> None:
    """A broken installation would look like a bug."""
    with pytest.raises(WorkerFailed, match="no/such"):
        await spawn_worker(guardian, ECHO, ENVIRONMENT, program=("/there/is/no/such",))


async def test_a_start_that_is_cancelled_leaves_nothing(guardian: Guardian) -> None:
    """I19: a run that is cancelled while its worker starts would leave the worker."""
    for seconds in (0.0, 0.01, 0.1):
        starting = asyncio.create_task(spawn_worker(guardian, ECHO, ENVIRONMENT, program=NEVER_LISTENS))
        await asyncio.wait({starting}, timeout=seconds)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert guardian.running == 0


async def test_a_worker_in_a_flood_of_words_is_not_held_up(guardian: Guardian) -> None:
    """A full pipe would stop a worker in the middle of its run."""
    flood = "import sys; sys.stdout.write('x' * 3_000_000 + '\\n'); "
    start = "print('ws://127.0.0.1:9', flush=True); sys.stdin.read()"
    worker = await spawn_worker(guardian, ECHO, ENVIRONMENT, program=(sys.executable, "-c", flood + start))
    assert worker.url == "ws://127.0.0.1:9"
    await worker.close()


async def test_it_is_reached_on_loopback_only(guardian: Guardian, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that prints another address could make us speak to any machine (A42)."""
    monkeypatch.setattr(limits, "WORKER_START_SECONDS", 0.5)
    program = ("/bin/bash", "-c", "echo ws://192.0.2.1:80; cat")
    with pytest.raises(WorkerFailed, match="did not listen"):
        await spawn_worker(guardian, ECHO, ENVIRONMENT, program=program)


# -- ending -----------------------------------------------------------------------------------------------------------


async def test_a_worker_that_is_killed_is_not_alive(guardian: Guardian) -> None:
    """A dead worker would be given the next run."""
    worker = await spawn_worker(guardian, ECHO, ENVIRONMENT)
    os.kill(worker.pid, signal.SIGKILL)
    async with asyncio.timeout(5):
        await asyncio.wait({worker._watching})
    assert not worker.alive
    await worker.close()


async def test_closing_ends_what_its_tools_hid(guardian: Guardian) -> None:
    """I22: a daemon of a cancelled run would live on."""
    mark = f"0.{time.monotonic_ns()}"
    worker = await spawn_worker(guardian, DEEDS, ENVIRONMENT)
    running = asyncio.create_task(ask(worker, f"daemon {mark}"))
    await until(lambda: bool(marked(mark)))
    await worker.close()
    await asyncio.wait({running})
    assert marked(mark) == {}


PARENT = """
import asyncio, json, sys
from tests.fleet.recorder import World
from tests.fleet.test_spawn import DEEDS, ENVIRONMENT
from windlass.fleet.parent.link import RemoteExecutor
from windlass.fleet.pool.spawn import spawn_worker
from windlass.guardian.handle import Guardian

async def main():
    guardian = await Guardian.start()
    busy, idle = await asyncio.gather(*(spawn_worker(guardian, DEEDS, ENVIRONMENT) for _ in range(2)))
    world = World(f"daemon {sys.argv[1]}")
    executor = RemoteExecutor(busy.url, busy.secret)
    running = asyncio.create_task(executor.run(world.spec, world.events, world.steer, world.cancel))
    await world.events.until(lambda: bool(world.events.events))
    print(json.dumps([busy.pid, idle.pid]), flush=True)
    await running

asyncio.run(main())
"""


@pytest.mark.parametrize("attempt", range(3))
async def test_no_process_is_left_when_the_parent_is_killed_with_force(attempt: int) -> None:
    """B36 B59 I22: workers, and what their tools forked twice into hiding, would outlive a server that crashed."""
    mark = f"0.{time.monotonic_ns()}{attempt}"
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, mark, stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY
    )
    assert parent.stdout is not None
    workers = set(json.loads(await parent.stdout.readline()))
    await until(lambda: bool(marked(f"sleep 3600 {mark}")))
    everyone = descendants(parent.pid) | set(marked(mark))
    assert workers < everyone
    parent.kill()
    await parent.wait()
    await until(lambda: not alive(everyone - {parent.pid}) and not marked(mark), 5.0)
