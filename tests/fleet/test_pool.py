"""A pool of warm workers: real processes, reused, renewed, bounded, and gone when they should be."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from tests.fleet.recorder import World
from tests.fleet.test_spawn import DEEDS, ENVIRONMENT, NEVER_LISTENS, until
from windlass import limits
from windlass.fleet.pool.pool import Pool, PoolLimits
from windlass.fleet.pool.pooled import PooledExecutor
from windlass.fleet.pool.spawn import PROGRAM, WorkerProcess
from windlass.guardian.handle import Guardian
from windlass.testing.processes import alive, marked, stand_still
from windlass.wire.execution import RunOutcome
from windlass.wire.worker import AgentSpec, ProviderSpec, WorkerSpec

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def a_pool(guardian: Guardian, program: Sequence[str] = PROGRAM, **bounds: float) -> AsyncIterator[Pool]:
    pool = Pool(guardian, ENVIRONMENT, msgspec.convert(bounds, PoolLimits), program=program)
    try:
        yield pool
    finally:
        await pool.aclose()
        assert guardian.running == 0


async def run(pool: Pool, prompt: str, spec: WorkerSpec = DEEDS, world: World | None = None) -> RunOutcome:
    world = world or World(prompt)
    async with asyncio.timeout(30):
        return await PooledExecutor(pool, spec).run(world.spec, world.events, world.steer, world.cancel)


async def pid_of(pool: Pool, spec: WorkerSpec = DEEDS) -> int:
    outcome = await run(pool, "pid", spec)
    assert outcome.status == "completed", outcome
    return int(outcome.result)


# -- reuse ------------------------------------------------------------------------------------------------------------


async def test_the_next_run_gets_the_same_process(guardian: Guardian) -> None:
    """B60: every run would pay for the start of a process."""
    async with a_pool(guardian) as pool:
        assert await pid_of(pool) == await pid_of(pool)
        assert (pool.statistics().started, pool.statistics().reused, pool.statistics().idle) == (1, 1, 1)


async def test_nothing_is_carried_over_to_the_next_run(guardian: Guardian) -> None:
    """B60: a run would find the environment, or the directory, that another one left."""
    async with a_pool(guardian) as pool:
        first, second = [(await run(pool, f"remember word{n}")).result for n in range(2)]
        assert (first, second, pool.statistics().started) == ("None /", "None /", 1)


async def test_a_run_that_failed_leaves_a_worker_that_can_be_used(guardian: Guardian) -> None:
    """A mistake of a model would cost a process."""
    async with a_pool(guardian) as pool:
        first = await pid_of(pool)
        assert (await run(pool, "fail on purpose")).status == "failed"
        assert await pid_of(pool) == first


async def test_a_run_that_was_cancelled_in_time_leaves_a_worker_that_can_be_used(guardian: Guardian) -> None:
    """Each cancel would cost a process, though the worker did all it was asked."""
    async with a_pool(guardian) as pool:
        first = await pid_of(pool)
        world = World("hang")
        running = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await pid_of(pool) == first


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(DEEDS, workspace_path="/tmp"),
        msgspec.structs.replace(DEEDS, identity="another"),
        msgspec.structs.replace(DEEDS, agent=AgentSpec(ProviderSpec("local", "openai", key="another"))),
    ],
    ids=["directory", "identity", "credential"],
)
async def test_a_worker_is_only_for_what_it_was_started_for(guardian: Guardian, other: WorkerSpec) -> None:
    """A run would work in another's directory, or with another's key."""
    async with a_pool(guardian) as pool:
        assert await pid_of(pool) != await pid_of(pool, other)
        assert pool.statistics().idle == 2


async def test_the_secret_is_no_part_of_the_key(guardian: Guardian) -> None:
    """It is made anew for each worker; part of the key, no worker would ever be used again."""
    async with a_pool(guardian) as pool:
        assert await pid_of(pool) == await pid_of(pool, msgspec.structs.replace(DEEDS, secret="whatever"))


async def test_a_key_tells_nothing_of_the_credential(guardian: Guardian) -> None:
    """A39: a digest in a log would let anyone try keys against it."""
    spec = msgspec.structs.replace(DEEDS, agent=AgentSpec(ProviderSpec("local", "openai", key="sk-canary")))
    async with a_pool(guardian) as one, a_pool(guardian) as other:
        assert one._key(spec) != other._key(spec)
        assert "canary" not in one._key(spec)


async def test_a_prewarmed_worker_is_what_the_first_run_gets(guardian: Guardian) -> None:
    """The first run would wait for a start that could have been done before."""
    async with a_pool(guardian) as pool:
        await pool.prewarm(DEEDS)
        assert pool.statistics().idle == 1
        await pid_of(pool)
        assert pool.statistics().started == 1


# -- dead and worn ----------------------------------------------------------------------------------------------------


async def test_a_worker_that_died_while_idle_costs_no_run(guardian: Guardian) -> None:
    """The next run would fail for what happened to a process that nobody was using."""
    async with a_pool(guardian) as pool:
        first = await pid_of(pool)
        os.kill(first, signal.SIGKILL)
        second = await pid_of(pool)
        assert second != first
        assert pool.statistics().started == 2


async def test_a_stopped_worker_is_found_out_by_the_handshake(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that exists but does not answer would be given the run, and the run would be lost."""
    async with a_pool(guardian) as pool:
        first = await pid_of(pool)
        await stand_still(first)
        shipped, start = limits.LINK_CONNECT_SECONDS, pool._start

        async def start_in_peace(spec: WorkerSpec) -> WorkerProcess:
            """The next worker gets all the time there is: on a busy machine one second was not enough for it."""
            monkeypatch.setattr(limits, "LINK_CONNECT_SECONDS", shipped)
            return await start(spec)

        monkeypatch.setattr(pool, "_start", start_in_peace)
        monkeypatch.setattr(limits, "LINK_CONNECT_SECONDS", 0.3)
        assert await pid_of(pool) != first
        assert pool.statistics().found_dead == 1


async def test_a_worker_is_used_only_so_often(guardian: Guardian) -> None:
    """What a library leaks with each run would grow for ever."""
    async with a_pool(guardian, uses=2) as pool:
        pids = [await pid_of(pool) for _ in range(4)]
        assert (pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3]) == (True, False, True)


async def test_a_worker_is_used_only_so_long(guardian: Guardian) -> None:
    """The same, for a worker that is used rarely."""
    async with a_pool(guardian, age_seconds=0.0) as pool:
        assert await pid_of(pool) != await pid_of(pool)
        assert pool.statistics().idle == 0


async def test_a_worker_that_nobody_wants_ends(guardian: Guardian) -> None:
    """A machine would keep every worker that was ever started."""
    async with a_pool(guardian, idle_seconds=0.2) as pool:
        pid = await pid_of(pool)
        assert pool.statistics().idle == 1
        await until(lambda: not alive({pid}))
        assert pool.statistics().idle == 0


async def test_no_more_than_so_many_are_kept_of_a_kind(guardian: Guardian) -> None:
    """A burst of runs would leave as many processes behind."""
    async with a_pool(guardian, idle_per_key=1) as pool:
        pids = await asyncio.gather(*(pid_of(pool) for _ in range(3)))
        await until(lambda: len(alive(set(pids))) == 1)
        assert pool.statistics().idle == 1


async def test_no_more_than_so_many_are_kept_in_all(guardian: Guardian) -> None:
    """Runs of many kinds would leave as many processes behind. The one that was idle longest goes."""
    kinds = [msgspec.structs.replace(DEEDS, identity=str(number)) for number in range(3)]
    async with a_pool(guardian, idle=2) as pool:
        pids = [await pid_of(pool, kind) for kind in kinds]
        await until(lambda: alive(set(pids)) == set(pids[1:]))
        assert pool.statistics().idle == 2


# -- lost and stopped -------------------------------------------------------------------------------------------------


async def test_a_worker_that_dies_in_mid_run_interrupts_it_and_leaves_no_process(guardian: Guardian) -> None:
    """I20 I22: the run would hang, or what its tools hid would live on."""
    mark = f"0.{time.monotonic_ns()}"
    async with a_pool(guardian) as pool:
        world = World(f"daemon {mark}")
        running = asyncio.create_task(run(pool, "", world=world))
        await until(lambda: bool(marked(f"sleep 3600 {mark}")))
        [worker] = pool._leased
        began = time.monotonic()
        os.kill(worker.pid, signal.SIGKILL)
        outcome = await running
        assert outcome.status == "interrupted"
        assert time.monotonic() - began < 5
        assert marked(mark) == {}
        assert pool.statistics().idle == 0


async def test_a_run_that_ignores_its_cancel_is_killed_with_its_worker(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B58 I5: an executor that is deaf would go on for ever; its worker would be given the next run."""
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.3)
    async with a_pool(guardian) as pool:
        world = World("deaf")
        running = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        [worker] = pool._leased
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not worker.alive
        assert alive({worker.pid}) == set()


async def test_the_cancel_token_alone_stops_a_run_too(guardian: Guardian) -> None:
    """An owner that only sets the token would wait for ever."""
    async with a_pool(guardian) as pool:
        world = World("hang")
        running = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        world.cancel.set()
        assert (await running).status == "canceled"


async def test_a_worker_that_cannot_be_started_fails_the_run_clearly(guardian: Guardian) -> None:
    """A wrong setting would start processes without end, and tell nobody why."""
    spec = msgspec.structs.replace(DEEDS, executor="tests.fleet.there_is_no_such:Class")
    async with a_pool(guardian) as pool:
        for _ in range(2):
            outcome = await run(pool, "pid", spec)
            assert outcome.status == "failed"
            assert outcome.error.startswith("The worker could not be started: it ended with exit code 2.")
            assert "there_is_no_such" in outcome.error
        assert (pool.statistics().failed_starts, pool.statistics().running) == (2, 0)


async def test_a_cancel_while_a_worker_starts_leaves_nothing(guardian: Guardian) -> None:
    """I19: the worker would start for a run that is over."""
    async with a_pool(guardian, NEVER_LISTENS) as pool:
        for seconds in (0.0, 0.01, 0.1):
            world = World("pid")
            running = asyncio.create_task(run(pool, "", world=world))
            await asyncio.wait({running}, timeout=seconds)
            world.cancel.set()
            assert (await running).status == "canceled"
        assert pool.statistics().running == 0


# -- many -------------------------------------------------------------------------------------------------------------


async def test_no_more_than_so_many_run_at_once_and_the_others_wait(guardian: Guardian) -> None:
    """Ten runs at once would start ten processes on a laptop."""
    async with a_pool(guardian, running=1) as pool:
        world = World("hang")
        first = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        second = asyncio.create_task(pid_of(pool))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (pool.statistics().running, pool.statistics().waiting) == (1, 1)
        world.cancel.set()
        await first
        await second
        assert (pool.statistics().running, pool.statistics().waiting, pool.statistics().started) == (0, 0, 1)


async def test_a_cancel_while_waiting_for_a_worker_leaves_the_line(guardian: Guardian) -> None:
    """A run that was cancelled would still be given a worker, and the place be lost."""
    async with a_pool(guardian, running=1) as pool:
        world = World("hang")
        first = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        waiting = World("pid")
        by_token = asyncio.create_task(run(pool, "", world=waiting))
        by_task = asyncio.create_task(run(pool, "pid"))
        await until(lambda: pool.statistics().waiting == 2)
        waiting.cancel.set()
        by_task.cancel()
        assert (await by_token).status == "canceled"
        await asyncio.wait({by_task})
        assert (by_task.cancelled(), pool.statistics().waiting) == (True, 0)
        world.cancel.set()
        await first
        await pid_of(pool)


async def test_a_line_that_is_too_long_is_refused_with_a_reason(guardian: Guardian) -> None:
    """Runs would wait for days."""
    async with a_pool(guardian, running=1, waiting=0) as pool:
        world = World("hang")
        first = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        outcome = await run(pool, "pid")
        assert (outcome.status, "already wait" in outcome.error) == ("failed", True)
        world.cancel.set()
        await first


async def test_an_agent_that_waits_for_its_agents_does_not_hold_their_places(guardian: Guardian) -> None:
    """Eight parents would hold all eight places, and wait for their children for ever."""
    async with a_pool(guardian, running=1) as pool:
        world = World("hang")
        parent = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        child = World("pid")
        async with asyncio.timeout(20):
            outcome = await PooledExecutor(pool, DEEDS, depth=1).run(
                child.spec, child.events, child.steer, child.cancel
            )
        assert outcome.status == "completed"
        world.cancel.set()
        await parent


async def test_many_runs_at_once_each_get_their_own(guardian: Guardian) -> None:
    """B56: two runs in one worker would see each other's events."""
    async with a_pool(guardian, running=3, idle_per_key=3) as pool:
        pids = await asyncio.gather(*(pid_of(pool) for _ in range(9)))
        assert len(set(pids)) <= 3
        assert (pool.statistics().idle, pool.statistics().running) == (len(set(pids)), 0)


# -- leaving ----------------------------------------------------------------------------------------------------------


async def test_closing_ends_every_worker_at_the_same_time(guardian: Guardian) -> None:
    """B35: a server that leaves would end them one after the other, or leave them."""
    async with a_pool(guardian, idle_per_key=3) as pool:
        pids = set(await asyncio.gather(*(pid_of(pool) for _ in range(3))))
        world = World("hang")
        busy = asyncio.create_task(run(pool, "", world=world))
        await world.events.until(lambda: bool(world.events.events))
        began = time.monotonic()
        await pool.aclose()
        assert alive(pids) == set()
        assert time.monotonic() - began < limits.GUARDIAN_END_SECONDS
        assert (await busy).status in ("interrupted", "canceled", "failed")


async def test_closing_ends_starts_and_sends_the_line_away(guardian: Guardian) -> None:
    """A run that gets its worker after the end would leave a process behind."""
    async with a_pool(guardian, running=1) as pool:
        starting = asyncio.create_task(run(pool, "pid"))
        await until(lambda: bool(pool._starting))
        waiting = asyncio.create_task(run(pool, "pid"))
        await until(lambda: pool.statistics().waiting == 1)
        await pool.aclose()
        for outcome in (await starting, await waiting, await run(pool, "pid")):
            assert outcome == RunOutcome("failed", "The worker could not be started: the server is leaving.")


# -- the token and then the task, as the engine cancels ----------------------------------------------------------------


@pytest.mark.parametrize("after_seconds", [0.0, 0.02, 0.1])
async def test_a_run_cancelled_while_its_worker_starts_gives_its_place_back(
    guardian: Guardian, after_seconds: float
) -> None:
    """Eight such cancels would leave a server that starts no run any more."""
    async with a_pool(guardian, running=1) as pool:
        world = World("pid")
        running = asyncio.create_task(
            PooledExecutor(pool, DEEDS).run(world.spec, world.events, world.steer, world.cancel)
        )
        await asyncio.wait({running}, timeout=after_seconds)
        world.cancel.set()
        for _ in range(3):
            await asyncio.sleep(0)  # turns of the loop, not time: the engine cancels the task a few of them later
        running.cancel()
        await asyncio.wait({running})
        assert pool.statistics().running == 0
        assert await pid_of(pool)


async def test_a_run_is_not_lost_to_what_the_run_before_it_left(guardian: Guardian) -> None:
    """B60: a worker that is not clean would take the next run along when it leaves."""
    async with a_pool(guardian) as pool:
        first = await run(pool, "thread 2.5")
        assert first.status == "completed"
        assert str(await pid_of(pool)) != first.result
