"""The simulation loop: what it promises to the suites that stand on it."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from windlass.testing.simloop import SimDeadlock, SimRunaway, run, simulate


async def crowd() -> list[int]:
    """Ten tasks that get in one another's way: sleeps, a queue, an event."""
    order: list[int] = []
    queue: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
    everyone_sent = asyncio.Event()

    async def send(number: int) -> None:
        await asyncio.sleep(0.001 * number)
        await queue.put(number)

    async def receive() -> None:
        while len(order) < 10:
            order.append(await queue.get())
        everyone_sent.set()

    receiver = asyncio.create_task(receive())
    await asyncio.gather(*(send(number) for number in range(10)))
    await asyncio.wait_for(everyone_sent.wait(), 1)
    await receiver
    return order


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_seed_gives_the_same_result_and_trace(shuffle: bool) -> None:
    """Else a failing seed could not be replayed, and a bug found once would be lost."""
    assert run(crowd, 7, shuffle) == run(crowd, 7, shuffle)


def test_another_process_gives_the_same_trace() -> None:
    """Else a seed that failed elsewhere could not be replayed here: string hashes and addresses differ."""
    program = "from test_simloop import crowd, run; print(run(crowd, 7)[1])"
    traces = set()
    for hash_seed in ("1", "2"):
        paths = ":".join([str(Path(__file__).parent), *filter(None, sys.path)])
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", program]
        traces.add(subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout)
    assert traces == {run(crowd, 7)[1].encode() + b"\n"}


def test_different_seeds_give_different_orders() -> None:
    """Else a thousand seeds would try one schedule a thousand times."""
    traces = {run(crowd, seed, shuffle=True)[1] for seed in range(50)}
    assert len(traces) > 40


def test_without_shuffle_callbacks_run_in_the_order_of_call_soon() -> None:
    """Else half of the simulation would blame code for relying on what asyncio documents."""

    async def main() -> list[int]:
        order: list[int] = []
        for number in range(20):
            asyncio.get_running_loop().call_soon(order.append, number)
        await asyncio.sleep(1)
        return order

    assert run(main, 3, shuffle=False)[0] == list(range(20))


def test_with_shuffle_some_seed_turns_two_callbacks_around() -> None:
    """Else code that relies on an order it never asked for would pass."""

    async def main() -> list[int]:
        order: list[int] = []
        for number in range(2):
            asyncio.get_running_loop().call_soon(order.append, number)
        await asyncio.sleep(1)
        return order

    assert {tuple(run(main, seed, shuffle=True)[0]) for seed in range(20)} == {(0, 1), (1, 0)}


def test_an_hour_of_sleep_takes_no_time() -> None:
    """Else nobody could simulate a grace period or a day of waiting for a person."""

    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert run(main, 0)[0] == 3600
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(("delay", "rounded"), [(0.001, 0.01), (0.01, 0.01), (0.011, 0.02), (0.1 + 0.2, 0.3)])
def test_delays_are_rounded_up_to_ten_milliseconds(delay: float, rounded: float) -> None:
    """Else timers hardly ever fall together, and races between two of them are not found."""

    async def main() -> float:
        await asyncio.sleep(delay)
        return asyncio.get_running_loop().time()

    assert run(main, 0)[0] == rounded


def test_timers_that_fall_together_come_in_both_orders() -> None:
    """Else an expiry and the attach of the same moment are only ever tried one way round."""

    async def main() -> tuple[str, ...]:
        order: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0.004, order.append, "attach")
        loop.call_later(0.009, order.append, "expire")
        await asyncio.sleep(1)
        return tuple(order)

    assert len({run(main, seed)[0] for seed in range(20)}) == 2


def test_waiting_for_what_never_comes_is_a_deadlock_that_names_the_waiter() -> None:
    """Else a lost wake-up would hang the suite instead of failing it."""

    async def main() -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="lost")

    with pytest.raises(SimDeadlock, match=r"lost \(Event\.wait\)"):
        run(main, 0)


def test_a_task_that_spins_is_stopped() -> None:
    """Else an endless loop of sleep(0) would hang the suite."""

    async def main() -> None:
        while True:  # noqa: ASYNC110 - spinning is what is shown here
            await asyncio.sleep(0)

    with pytest.raises(SimRunaway):
        simulate(main, 0, callbacks=1000)


def test_a_task_that_was_stopped_for_spinning_is_ended_like_any_other() -> None:
    """Else its next step is lost: it can never end, and a second, false error is reported beside the real one."""
    ended: list[str] = []

    async def main() -> None:
        try:
            while True:  # noqa: ASYNC110 - spinning is what is shown here
                await asyncio.sleep(0)
        finally:
            ended.append("finally")

    with pytest.raises(SimRunaway) as caught:
        simulate(main, 0, callbacks=1000)
    assert (ended, getattr(caught.value, "__notes__", [])) == (["finally"], [])


def test_an_exception_in_a_callback_is_raised_at_the_end() -> None:
    """Else a simulation in which a callback failed would pass."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(int, "not a number")
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="not a number"):
        run(main, 0)


def test_an_exception_of_a_task_nobody_awaited_is_raised_at_the_end() -> None:
    """Else a background task could die unnoticed, even when it is kept alive by a reference."""
    kept: list[asyncio.Task[None]] = []

    async def fail() -> None:
        raise LookupError("nobody looks")

    async def main() -> None:
        kept.append(asyncio.create_task(fail()))
        await asyncio.sleep(1)

    with pytest.raises(LookupError, match="nobody looks"):
        run(main, 0)


def test_several_unhandled_exceptions_are_raised_together() -> None:
    """Else the first would hide the others."""

    async def main() -> None:
        for text in ("one", "two"):
            asyncio.get_running_loop().call_soon(int, text)
        await asyncio.sleep(1)

    with pytest.raises(BaseExceptionGroup) as caught:
        run(main, 0)
    assert len(caught.value.exceptions) == 2


def test_what_main_raises_comes_first_with_the_others_as_notes() -> None:
    """Else a failed assertion of the scenario would be hidden by what it caused in the background."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(int, "in the background")
        await asyncio.sleep(1)
        raise AssertionError("the scenario's own")

    with pytest.raises(AssertionError, match="the scenario's own") as caught:
        run(main, 0)
    assert "in the background" in caught.value.__notes__[0]


def test_a_task_left_behind_is_cancelled_and_named() -> None:
    """Else nobody would see that something outlives what it belongs to (I19)."""
    ended: list[str] = []

    async def stay() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("finally")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(stay(), name="stays")
        await asyncio.sleep(1)
        return task

    simulation = simulate(main, 0)
    assert [name.split()[0] for name in simulation.leaked] == ["stays"]
    assert simulation.result.cancelled()
    assert ended == ["finally"]


def test_a_scenario_that_ends_what_it_began_leaks_nothing() -> None:
    """Else `leaked` would cry wolf and tests would stop asserting it."""
    assert simulate(crowd, 1).leaked == []


def test_a_task_that_refuses_to_be_cancelled_is_told_as_a_deadlock() -> None:
    """Else a task that swallows its cancel would hang the end of every simulation, or go unseen."""

    async def refuse() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(refuse())
        await asyncio.sleep(1)
        return task

    with pytest.raises(SimDeadlock, match="refuse"):
        simulate(main, 0)


def test_a_task_that_refuses_to_be_cancelled_is_closed_before_the_loop_is_gone() -> None:
    """Else its `finally` runs when the garbage collector likes, in the middle of another test."""
    ended: list[str] = []

    async def refuse() -> None:
        try:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass
        finally:
            ended.append("finally")

    async def main() -> None:
        kept.append(asyncio.create_task(refuse()))
        await asyncio.sleep(1)

    kept: list[asyncio.Task[None]] = []
    with pytest.raises(SimDeadlock):
        simulate(main, 0)
    assert ended == ["finally"]


def test_a_timeout_fires_at_its_virtual_time() -> None:
    """Else deadlines in the engine would never be reached in a simulation."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main, 0)[0] == 30


def test_a_cancelled_timer_is_nothing_to_wait_for() -> None:
    """Else time runs on to a timeout that was called off, and a lost wake-up is reported late or not at all."""

    async def main() -> None:
        asyncio.get_running_loop().call_later(500, print, "never").cancel()
        await asyncio.Event().wait()

    with pytest.raises(SimDeadlock, match=r"at 0\.0 s"):
        run(main, 0)


def test_call_soon_threadsafe_works_from_the_loops_own_thread() -> None:
    """Else a journal whose writer is called inline could not publish."""

    async def main() -> bool:
        done = asyncio.Event()
        asyncio.get_running_loop().call_soon_threadsafe(done.set)
        return await done.wait()

    assert run(main, 0)[0]


def test_another_thread_may_not_call_in() -> None:
    """Else a forgotten thread would make runs differ although their seed is the same."""

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        refused: list[str] = []

        def intrude() -> None:
            try:
                loop.call_soon_threadsafe(print, "never")
            except RuntimeError as problem:
                refused.append(str(problem))

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        return refused

    assert "another thread" in run(main, 0)[0][0]


def test_to_thread_runs_the_function_on_the_loop_itself() -> None:
    """Else blocking work would run at a moment that no seed decides."""

    async def main() -> int:
        return await asyncio.to_thread(threading.get_ident)

    assert run(main, 0)[0] == threading.get_ident()


def test_an_async_generator_left_open_is_closed() -> None:
    """Else its `finally` would run during some later test."""
    closed: list[bool] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    kept = []

    async def main() -> int:
        generator = numbers()
        kept.append(generator)
        return await anext(generator)

    assert run(main, 0)[0] == 1
    assert closed == [True]
