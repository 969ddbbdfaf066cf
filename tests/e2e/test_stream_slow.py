"""A reader that stops reading: it costs no memory, delays nobody, and loses nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import pytest_asyncio
from log_reading import is_dense, whole_log
from one_server import OneServer
from slow_reader import SlowReader

from windlass.testing.processes import resident_bytes
from windlass.testing.server_process import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
ANSWER = 250_000  # characters; it is in two facts of a run: the message, and the run's last word
RUNS = 40
READERS = 8
MEGABYTE = 1_000_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OneServer]:
    async with OneServer(tmp_path_factory.mktemp("one")) as one:
        one.model.auto(lambda request: [{"say": "x" * ANSWER}])
        yield one


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def produce(api: Api, runs: int) -> list[str]:
    """About half a megabyte of events a run, each in a session of its own so that no model is sent what went before."""
    run_ids = []
    for _ in range(runs):
        accepted = await api.prompt(await api.new_session(), "At length, please.")
        await api.run_over(accepted["run_id"])
        run_ids.append(accepted["run_id"])
    return run_ids


async def test_readers_that_stop_reading_cost_next_to_no_memory(one: OneServer, stack: ExitStack) -> None:
    """B42 I14: else every sleeping laptop costs the server what it has not read, until there is no memory left."""
    api = await one.client()
    directory = await _directory_of(api)
    await produce(api, RUNS)  # so that everything that is kept anyway, such as the tail, has its full size
    before = resident_bytes(one.server.pid)
    for _ in range(READERS):  # several: what one costs is less than what memory goes up and down by itself
        slow = stack.enter_context(SlowReader(await one.client(directory), after="0"))
        await slow.attached()
    await produce(api, RUNS)
    assert resident_bytes(one.server.pid) - before < READERS * 2 * MEGABYTE


async def test_a_reader_that_stops_reading_delays_nobody(one: OneServer) -> None:
    """B42 I14: else one sleeping laptop makes everybody wait."""
    api = await one.client()
    with SlowReader(api, after="0") as slow:
        await slow.attached()
        other = await one.client(await _directory_of(api))
        async with other.stream() as tap:
            for _ in range(16):  # more than its buffers hold
                (run_id,) = await produce(other, 1)
                began = time.monotonic()
                await tap.complete(run_id)
                assert time.monotonic() - began < 5


async def test_a_reader_that_reads_on_gets_everything_in_order(one: OneServer) -> None:
    """B42 I13: else a slow link loses part of the conversation."""
    api = await one.client()
    with SlowReader(api, after="0") as slow:
        await slow.attached()
        run_ids = await produce(api, RUNS)
        last = run_ids[-1]
        events = await slow.read_until(lambda event: event.kind == "run_complete" and event.body["run_id"] == last)
    facts = [event for event in events if event.id]
    assert is_dense(facts)
    assert sum(len(str(event.body)) for event in facts) > 15 * MEGABYTE
    assert [event.body["run_id"] for event in facts if event.kind == "run_complete"] == run_ids
    assert facts == await whole_log(api)


async def test_many_readers_that_catch_up_leave_room_for_a_request(one: OneServer) -> None:
    """B42 I14: else clients that come back together freeze everyone who is working."""
    api = await one.client()
    await produce(api, 12)
    readers = [await one.client(await _directory_of(api)) for _ in range(8)]

    async def catch_up(reader: Api) -> int:
        return len(await whole_log(reader))

    catching_up = [asyncio.create_task(catch_up(reader)) for reader in readers]
    slowest = 0.0
    while not all(task.done() for task in catching_up):
        began = time.monotonic()
        await api.ok("GET", "/v1/version")
        slowest = max(slowest, time.monotonic() - began)
    lengths = {await task for task in catching_up}
    assert lengths == {len(await whole_log(api))}
    assert slowest < 3


async def _directory_of(api: Api) -> Any:
    return (await api.ok("GET", f"/v1/workspaces/{api.workspace_id}"))["path"]
