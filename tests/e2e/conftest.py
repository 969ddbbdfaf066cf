"""A real server, a model whose words the test decides, and clients of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from one_server import OneServer

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config

PLACEMENTS = ("local", "process")
Starter = Callable[..., Awaitable[ServerProcess]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is promised of runs holds wherever they are executed: their modules run for both placements (B73)."""
    parted = metafunc.module.__name__.startswith(("test_runs_", "test_lifetimes_processes"))
    if parted and "placement" in metafunc.fixturenames:
        metafunc.parametrize("placement", PLACEMENTS)


@pytest.fixture
def placement() -> str:
    """Where runs are executed: as the config's [runs] placement says."""
    return "local"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def start_server(tmp_path: Path, model: ModelServer, stack: AsyncExitStack, placement: str) -> Starter:
    """Starts a server that speaks to `model`; extra arguments go to `windlass serve`, sections into its config."""

    async def start(*arguments: str, **sections: str) -> ServerProcess:
        config = openai_config(model.url, **{"runs": f'placement = "{placement}"', **sections})
        server = ServerProcess(tmp_path / "server", *arguments, config=config)
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
