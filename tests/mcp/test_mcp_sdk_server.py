"""MCP servers over standard input and output: a real one, written with the SDK, in a process of its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from mcp_world import McpWorld, real, written

from windlass import limits

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(directory: Path) -> AsyncIterator[McpWorld]:
    spec = real("a", directory, "chatty", "name=Ada", env={"A_KEY": "open-sesame"}, tools=("[!r]*", "root"))
    async with McpWorld(spec, path="/tmp") as world:
        await world.tools()
        yield world


async def test_its_tools_are_told_as_it_describes_them(world: McpWorld) -> None:
    """A model would not know what it can call, or with what."""
    tools = {tool.name: tool for tool in await world.tools()}
    assert {"add", "fail", "wait", "who"} <= set(tools)
    assert tools["add"].description == "Add two numbers."
    assert set(tools["add"].schema["properties"]) == {"a", "b"}


async def test_only_the_tools_that_the_config_names_are_told(world: McpWorld) -> None:
    """A user who allows three tools of a server would give an agent all of them."""
    names = await world.names()
    assert "raw" not in names and "root" in names
    output = await world.call("raw", text="x")
    assert output.is_error and "no tool 'raw'" in output.content


async def test_a_hint_alone_does_not_make_a_tool_read_only(world: McpWorld) -> None:
    """A32: a server could make its own tools ones that run in a plan, beside each other."""
    assert not any(tool.read_only for tool in await world.tools())


async def test_a_call_is_answered(world: McpWorld) -> None:
    """The whole feature."""
    assert (await world.call("add", a=2, b=3)).content == "5"
    assert (await world.call("who")).content == "Ada"


async def test_a_tool_that_fails_is_an_output_that_says_so(world: McpWorld) -> None:
    """A run would fail because a tool did, although the model could do something about it."""
    output = await world.call("add", a="no number")
    assert output.is_error and "valid integer" in output.content


async def test_one_image_is_kept_and_the_rest_is_described(world: McpWorld) -> None:
    """A model would not see the screenshot it asked for."""
    output = await world.call("picture")
    assert (output.mime_type, output.data != "") == ("image/png", True)
    assert output.content.splitlines()[0] == "look:"
    assert "audio/wav" in output.content and output.content.count("is not shown") == 2


async def test_ten_megabytes_are_shortened(world: McpWorld) -> None:
    """A32: a model's window and the log of a workspace would be filled by one result."""
    output = await world.call("long", size=10_000_000)
    assert output.content[0] == "<" and output.content[-1] == ">"
    assert len(output.content) < limits.TOOL_OUTPUT_CHARACTERS + 100


async def test_its_environment_is_what_is_harmless_and_what_is_configured(
    world: McpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A39: every server would be given the keys of all providers."""
    lines = (await world.call("environment")).content.splitlines()
    names = {line.partition("=")[0] for line in lines} - {"LC_CTYPE", "cwd"}  # the interpreter sets the first by itself
    assert names == {"PATH", "A_KEY", "WINDLASS_WORKSPACE"}


async def test_it_is_not_started_in_the_workspace(world: McpWorld) -> None:
    """A25: `npx` and `python -m` would run what a repository ships under the name of the server."""
    assert "cwd=/" in (await world.call("environment")).content.splitlines()


async def test_it_can_ask_which_directory_this_is_about(world: McpWorld) -> None:
    """It would work on the wrong directory, or none."""
    assert (await world.call("root")).content == "file:///tmp"


async def test_a_cancel_reaches_the_server(world: McpWorld, directory: Path) -> None:
    """B18: the run would be over, and what it started would go on changing things."""
    call = asyncio.create_task(world.call("wait"))
    await written(directory / "waiting")
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    assert "Cancelled" in await written(directory / "cancelled")
