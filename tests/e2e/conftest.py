"""A real server, a model whose words the test decides, and clients of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from one_server import OneServer

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config

Starter = Callable[..., Awaitable[ServerProcess]]


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def start_server(tmp_path: Path, model: ModelServer, stack: AsyncExitStack) -> Starter:
    """Starts a server that speaks to `model`; extra arguments go to `windlass serve`, sections into its config."""

    async def start(*arguments: str, **sections: str) -> ServerProcess:
        server = ServerProcess(tmp_path / "server", *arguments, config=openai_config(model.url, **sections))
        return await stack.enter_async_context(server)

    return start


@pytest.fixture
async def server(start_server: Starter) -> ServerProcess:
    return await start_server()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
async def api(server: ServerProcess, directory: Path, stack: AsyncExitStack) -> Api:
    """A client that has opened the workspace of `directory`."""
    api = await stack.enter_async_context(Api(server))
    await api.open(directory)
    return api


@pytest.fixture
async def other(server: ServerProcess, directory: Path, stack: AsyncExitStack) -> Api:
    """A second client of the same workspace."""
    api = await stack.enter_async_context(Api(server))
    await api.open(directory)
    return api


@pytest_asyncio.fixture(loop_scope="module")
async def one(lasting_one: OneServer) -> AsyncIterator[OneServer]:
    """The server of a module that has one, with clients that are closed after the test."""
    yield lasting_one
    await lasting_one.tidy()
