"""What a server loads and starts when it starts: nothing that only some of its work needs."""

import re
from pathlib import Path

import pytest

from windlass.testing.processes import descendants
from windlass.testing.server_process import Api, ServerProcess, until

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


async def test_a_server_that_runs_no_command_is_one_process(tmp_path: Path) -> None:
    """Everyone would wait for a guardian at the start, and pay for it, though it has nothing to guard."""
    project = tmp_path / "project"
    project.mkdir()
    async with ServerProcess(tmp_path / "server") as server, Api(server) as api:
        await api.open(project)
        session = await api.new_session()
        assert descendants(server.pid) == set()
        await api.ok("POST", f"W/agent/sessions/{session}/shell", {"command": "true"})
        await until(lambda: len(descendants(server.pid)) == 1, "only the guardian is left")
