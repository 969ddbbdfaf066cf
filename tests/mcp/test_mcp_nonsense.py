"""MCP servers that misbehave: whatever one says, the run goes on and nothing of ours grows without bound (A32)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp_world import McpWorld, plain

from windlass import limits


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[McpWorld]:
    async with McpWorld(plain("a", tmp_path, env={"A_KEY": "open-sesame"})) as world:
        await world.tools()
        yield world


async def offering(tmp_path: Path, tools: list[Any], *options: str) -> list[Any]:
    """What is told of a server that describes its tools like this."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    async with McpWorld(plain("a", tmp_path, f"tools={file}", *options)) as world:
        return await world.tools()


async def test_a_message_that_never_ends_ends_the_connection(world: McpWorld) -> None:
    """One line could take all memory of a server that many people share."""
    output = await world.call("big")
    assert output.is_error and "more than 16 MiB" in output.content
    assert not (await world.call("echo")).is_error


async def test_half_a_message_is_none(world: McpWorld) -> None:
    """A call would wait for the rest of it for ever."""
    output = await world.call("half")
    assert output.is_error and "not known" in output.content


async def test_nesting_that_is_too_deep_fails_its_call_alone(world: McpWorld) -> None:
    """A parser that recurses would take the whole server down."""
    output = await world.call("deep")
    assert output.is_error and "cannot be read" in output.content
    assert not (await world.call("echo")).is_error


async def test_a_result_that_makes_no_sense_is_an_error_of_that_call(world: McpWorld) -> None:
    """A mistake of a server would end the run."""
    output = await world.call("nonsense")
    assert output.is_error and "makes no sense" in output.content
    assert not (await world.call("echo")).is_error


async def test_an_error_is_told_to_the_model_without_secrets(world: McpWorld) -> None:
    """A39: what a server quotes of its own environment would be kept in a conversation, and sent to a provider."""
    output = await world.call("boom")
    assert (output.is_error, output.content) == (True, "The MCP server refused: boom with ***.")


async def test_half_a_character_fails_its_call_alone(world: McpWorld) -> None:
    """The call would wait for an answer that has come, or the run would fail when it is written down."""
    output = await world.call("surrogate")
    assert output.is_error and "cannot be read" in output.content


async def test_a_server_that_asks_and_does_not_read_is_given_up(world: McpWorld) -> None:
    """Every question it asks would wait in our memory for a pipe that is full."""
    output = await asyncio.wait_for(world.call("flood"), 30)
    assert output.is_error and "does not read" in output.content


async def test_more_calls_than_a_server_may_have_are_refused(world: McpWorld, tmp_path: Path) -> None:
    """A loop of calls would hold any number of tasks and messages."""
    calls = [asyncio.create_task(world.call("wait")) for _ in range(limits.MCP_CALLS)]
    await asyncio.sleep(0)
    output = await world.call("echo")
    assert output.is_error and f"{limits.MCP_CALLS} calls" in output.content
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


async def test_tools_that_cannot_be_told_are_left_out_and_the_others_are_not(tmp_path: Path) -> None:
    """One bad tool would spoil a whole server, or every request to the provider."""
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(limits.TOOL_ARGUMENTS_DEPTH // 2 + 1):
        deep = {"type": "object", "properties": {"x": deep}}
    long = {"type": "object", "description": "x" * limits.MCP_SCHEMA_BYTES}
    fine = {"type": "object"}
    tools = [
        {"name": "fine", "inputSchema": fine, "description": "y" * 100_000},
        {"name": "fine", "inputSchema": fine, "description": "another of the same name"},
        {"name": "deep", "inputSchema": deep},
        {"name": "long", "inputSchema": long},
        {"name": "x" * 200, "inputSchema": fine},
        {"name": "", "inputSchema": fine},
        {"name": "new\nline", "inputSchema": fine},
    ]
    told = {tool.name: tool for tool in await offering(tmp_path, tools)}
    assert set(told) == {"fine"}
    assert len(told["fine"].description) == limits.MCP_DESCRIPTION_CHARACTERS


async def test_a_list_that_never_ends_is_cut(tmp_path: Path) -> None:
    """A server that always has another page would be asked for ever, and a model would be told of all of it."""
    tools = [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(1_000)]
    assert len(await offering(tmp_path, tools, "pages")) == limits.MCP_TOOLS


async def test_a_tool_only_reads_when_the_server_says_so_and_the_user_vouches_for_it(tmp_path: Path) -> None:
    """A32: what only reads runs in a plan; neither a server nor a pattern of the user's alone may decide that."""
    hint = {"readOnlyHint": True}
    tools = [
        {"name": "look_said", "inputSchema": {"type": "object"}, "annotations": hint},
        {"name": "look_unsaid", "inputSchema": {"type": "object"}},
        {"name": "other_said", "inputSchema": {"type": "object"}, "annotations": hint},
    ]
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(tools))
    async with McpWorld(plain("a", tmp_path, f"tools={file}", read_only=("look_*",))) as world:
        assert [tool.name for tool in await world.tools() if tool.read_only] == ["look_said"]
