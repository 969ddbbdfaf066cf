"""A fake server and a client on it, for every test that needs them."""

from collections.abc import AsyncIterator

import pytest
from fake_windlass import TOKEN, FakeWindlass

from windlass.client import Client, WorkspaceHandle


@pytest.fixture
async def server() -> AsyncIterator[FakeWindlass]:
    async with FakeWindlass().serve() as running:
        yield running


@pytest.fixture
async def client(server: FakeWindlass) -> AsyncIterator[Client]:
    async with Client(server.url, TOKEN) as connected:
        yield connected


@pytest.fixture
async def workspace(client: Client) -> WorkspaceHandle:
    return await client.open("/somewhere")
