"""One server and one world for all claims: a refused request leaves nothing that could disturb the next.

Everything here lives on the session's event loop, so a module that uses it says
`pytestmark = pytest.mark.asyncio(loop_scope="session")`.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from door_client import DoorClient
from world import Starter, World, scripted_config

from windlass.server.tokens import TokenStore
from windlass.testing.server_process import ServerProcess


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("server")
    async with ServerProcess(directory, "--drain", "0", config=scripted_config(directory)) as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tokens(server: ServerProcess) -> dict[str, str]:
    """A token of each scope, made beside the running server, as the command line makes them."""
    store = TokenStore(server.data_dir)
    return {scope: store.create(f"test-{scope}", scope) for scope in ("operate", "read", "worker")}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """For requests that change nothing."""
    async with World(server, tmp_path_factory.mktemp("project")) as world:
        yield world


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def other_world(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A second workspace beside `world`, of another client."""
    async with World(server, tmp_path_factory.mktemp("other")) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def fresh_world(server: ServerProcess, tmp_path: Path) -> AsyncIterator[World]:
    """For requests that may change something."""
    async with World(server, tmp_path / "project", keep_alive=True) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def door(server: ServerProcess) -> AsyncIterator[DoorClient]:
    async with DoorClient(server) as door:
        yield door


@pytest_asyncio.fixture(loop_scope="session")
async def start_server(tmp_path: Path) -> AsyncIterator[Starter]:
    """Starts a server of the test's own, for claims that change or end it."""
    async with AsyncExitStack() as stack:

        async def start(*arguments: str, listen: str = "127.0.0.1:0") -> ServerProcess:
            config = scripted_config(tmp_path)
            own = ServerProcess(tmp_path / "own", "--drain", "0", *arguments, config=config, listen=listen)
            return await stack.enter_async_context(own)

        yield start
