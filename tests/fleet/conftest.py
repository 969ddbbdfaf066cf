"""A worker of this process over a real socket, and peers of it in both dialects."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fleet.full_peer import FullPeer
from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer
from windlass.fleet.worker.worker import WorkerAddress
from windlass.guardian.handle import Guardian


@pytest.fixture
async def worker() -> AsyncIterator[WorkerAddress]:
    async with own_worker() as address:
        yield address


@pytest.fixture
async def plain(worker: WorkerAddress) -> AsyncIterator[PlainPeer]:
    async with PlainPeer(worker.url) as peer:
        yield peer


@pytest.fixture
async def full(worker: WorkerAddress) -> AsyncIterator[FullPeer]:
    async with FullPeer(worker.url) as peer:
        await peer.greet()
        yield peer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guardian() -> AsyncIterator[Guardian]:
    """One for all tests of a module, as a server has one for all its workers and commands.

    The module says `pytestmark = pytest.mark.asyncio(loop_scope="module")`: the guardian's socket is on that loop.
    """
    guardian = await Guardian.start()
    yield guardian
    assert guardian.running == 0
    await guardian.aclose()
