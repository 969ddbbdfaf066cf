"""A worker of this process over a real socket, and peers of it in both dialects."""

from collections.abc import AsyncIterator

import pytest

from tests.fleet.full_peer import FullPeer
from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer
from windlass.fleet.worker.worker import WorkerAddress


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
