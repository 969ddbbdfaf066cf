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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[ServerProcess, ModelServer]]:
    directory = tmp_path_factory.mktemp("server")
    async with ModelServer() as model, ServerProcess(directory, config=openai_config(model.url)) as server:
        yield server, model


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_server: tuple[ServerProcess, ModelServer], tmp_path: Path) -> AsyncIterator[World]:
    """This test's own workspace on the server that all share."""
    directory = tmp_path / "project"
    directory.mkdir()
    async with AsyncExitStack() as stack:
        world = World(*shared_server, directory, stack)
        yield world
        await world.tidy()
