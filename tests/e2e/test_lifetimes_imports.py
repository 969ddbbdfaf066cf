"""What a server loads when it starts: nothing that only some of its work needs."""

import re
from pathlib import Path

import pytest

from windlass.testing.server_process import ServerProcess

_IMPORTED = re.compile(r"^import time: .*\|\s*([\w.]+)$", re.MULTILINE)
# Of the client side, of development, of a framework's corners, of a first tool call, of a first look at the page: each
# is megabytes or milliseconds.
_NOT_NEEDED = {
    "aiohttp",
    "hypothesis",
    "jinja2",
    "markdown_it",
    "markdownify",
    "mcp",
    "nh3",
    "pydantic",
    "pygments",
    "pytest",
    "rich.console",
    "rich_click",
    "windlass.client",
    "windlass.testing",
}


@pytest.fixture
async def imported(tmp_path: Path) -> set[str]:
    """The modules that were loaded when the server said that it is ready."""
    server = ServerProcess(tmp_path)
    server.program = "windlass"  # the one people run, without what tests put around it
    await server.start({"PYTHONPROFILEIMPORTTIME": "1"})
    loaded = set(_IMPORTED.findall(server.log()))
    await server.stop()
    return loaded


async def test_what_is_not_needed_at_the_start_is_not_imported(imported: set[str]) -> None:
    """A server that nobody uses yet would take a second to start and more memory than many a laptop app."""
    assert {"litestar", "uvloop", "windlass.app", "windlass.engine.workspace"} <= imported  # the list is a real one
    assert imported & _NOT_NEEDED == set()
