"""One browser and one server for all tests of the page in this process; each has its own directory and profiles.

`make page` runs them all; `make test` takes the modules of a sample, so that it stays short.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.page import browser
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess, openai_config

if TYPE_CHECKING:
    from tests.page.contexts import Contexts
    from tests.page.page_world import PageWorld

_HERE = Path(__file__).parent
_SAMPLE = {"test_page_session", "test_page_foreign"}  # what everyone uses, and what must never be open


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a browser every test here is skipped, and counted, with the one reason."""
    reason = browser.missing()
    ours = [item for item in items if _HERE in item.path.parents]
    if reason:
        for item in ours:
            item.add_marker(pytest.mark.skip(reason=reason))
    if config.getoption("--page") == "sample":
        assert all((_HERE / f"{name}.py").exists() for name in _SAMPLE), "the sample would silently be smaller"
        left_out = {item for item in ours if item.path.stem not in _SAMPLE}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def contexts() -> AsyncIterator["Contexts"]:
    from tests.page.contexts import Contexts

    async with browser.started() as started:
        yield Contexts(started)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def page_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[ServerProcess, ModelServer]]:
    async with ModelServer() as model:
        config = openai_config(model.url)
        async with ServerProcess(tmp_path_factory.mktemp("page") / "server", "--drain", "0", config=config) as server:
            yield server, model


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory that is the test's workspace."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest_asyncio.fixture(loop_scope="session")
async def world(
    contexts: "Contexts", page_server: tuple[ServerProcess, ModelServer], project: Path
) -> AsyncIterator["PageWorld"]:
    from tests.page.page_world import PageWorld

    async with AsyncExitStack() as stack:
        world = PageWorld(*page_server, project, stack, contexts)
        try:
            yield world
        finally:
            await world.tidy()
            await world.close_profiles()
