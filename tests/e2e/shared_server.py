"""One server for the tests of many modules: starting one costs a second, which a claim about one run need not pay.

A module says `pytest_plugins = ["shared_server"]` and `pytestmark = pytest.mark.asyncio(loop_scope="session")`; its
tests take `world`.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from shared_world import World

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess, openai_config

SharedServers = dict[str, tuple[ServerProcess, ModelServer]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SharedServers]:
    """By placement of runs. All of them from the start: one that a test started would seem to be left behind by it."""
    directory = tmp_path_factory.mktemp("servers")
    async with AsyncExitStack() as stack:
        servers: SharedServers = {}
        for placement in ("local", "process"):
            model = await stack.enter_async_context(ModelServer())
            config = openai_config(model.url, runs=f'placement = "{placement}"')
            server = await stack.enter_async_context(ServerProcess(directory / placement, config=config))
            servers[placement] = server, model
        yield servers


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_servers: SharedServers, placement: str, tmp_path: Path) -> AsyncIterator[World]:
    """This test's own workspace on the server that all share."""
    directory = tmp_path / "project"
    directory.mkdir()
    async with AsyncExitStack() as stack:
        world = World(*shared_servers[placement], directory, stack)
        yield world
        await world.tidy()
