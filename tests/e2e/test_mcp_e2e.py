"""Runs that use tools of MCP servers, in a whole server: told to the model, allowed by people, called, cleaned up."""

import json
import sys
from pathlib import Path

import pytest
from conftest import PLACEMENTS, Starter

from windlass.testing.model_server import ModelServer
from windlass.testing.processes import alive
from windlass.testing.server_process import Api, ServerProcess, until

SERVERS = Path(__file__).parent.parent / "mcp"


def section(directory: Path, *options: str, script: str = "plain_server.py", more: str = "") -> dict[str, str]:
    """The part of the config that names the server `a`. A run waits for it for as long as a busy machine may need."""
    command = [sys.executable, str(SERVERS / script), str(directory), *options]
    patience = "" if "connect_timeout" in more else 'connect_timeout = "60s"\n'
    return {"mcp.a": f"command = {json.dumps(command)}\n{patience}{more}"}


def told_tools(request: dict[str, object]) -> set[str]:
    tools = request.get("tools") or []
    assert isinstance(tools, list)
    return {tool["function"]["name"] for tool in tools}


@pytest.mark.parametrize("placement", PLACEMENTS)
async def test_a_run_calls_a_tool_of_an_mcp_server(
    start_server: Starter, directory: Path, tmp_path: Path, model: ModelServer
) -> None:
    """B73 I10: the whole way, wherever the agent is: the model knows the tool, people allow it, and it is called."""
    server = await start_server(**section(tmp_path, "name=Ada", script="a_server.py"))
    async with Api(server) as api:
        await api.open(directory)
        assert await api.ok("GET", "W/mcp/states") == [{"name": "a", "state": "stopped", "error": "", "tool_count": 0}]
        async with api.stream() as stream:
            run_id = (await api.prompt(await api.new_session(), "go"))["run_id"]
            call = await model.next_call(60)
            assert "mcp_a_who" in told_tools(call.request)
            await call.tool("mcp_a_who", {})
            await call.end()
            asked = (await stream.wait_for("permission_request")).body
            assert (asked["tool_name"], asked["params"]["server"], asked["params"]["tool"]) == ("mcp_a_who", "a", "who")
            await api.ok("POST", "W/permissions/grant", {"permission": {"id": asked["id"]}, "action": "allow"})
            call = await model.next_call()
            assert "Ada" in json.dumps(call.request["messages"][-1])
            await call.say("Done.")
            await call.end()
            await stream.complete(run_id)
            told = [event for event in stream.facts if event.kind == "mcp_event"]
        assert [event.body["state"] for event in told] == ["starting", "connected"]
        assert (await api.ok("GET", "W/mcp/states")) == [told[-1].body]
        assert told[-1].body["tool_count"] > 5
    await server.stop()
    assert not alive(set(map(int, (tmp_path / "pid").read_text().split())))


async def test_a_server_that_is_killed_leaves_no_mcp_server(
    start_server: Starter, directory: Path, tmp_path: Path, model: ModelServer
) -> None:
    """B36 I22: with every crash there would be one more process of each, with the user's keys in it."""
    server = await start_server(**section(tmp_path))
    async with Api(server) as api:
        await api.open(directory)
        await api.prompt(await api.new_session(), "go")
        await model.next_call(30)
        pids = set(map(int, (tmp_path / "pid").read_text().split()))
        assert len(alive(pids)) == 1
        await server.kill()
        await until(lambda: not alive(pids), "the MCP server is gone", 5)


async def test_what_a_repository_says_of_mcp_servers_does_nothing(
    start_server: Starter, directory: Path, tmp_path: Path, model: ModelServer
) -> None:
    """A25: whoever opens a directory would run what its author wrote there."""
    touch = {"command": "touch", "args": [str(tmp_path / "touched")], "type": "stdio"}
    content = json.dumps({"mcpServers": {"evil": touch}, "servers": {"evil": touch}, "mcp": {"evil": touch}})
    for name in (".mcp.json", "mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".windlass/mcp.json"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(content)
    for name in ("windlass.toml", ".windlass.toml", ".windlass/config.toml", "config.toml"):
        (directory / name).write_text(f'[mcp.evil]\ncommand = ["touch", "{tmp_path / "touched"}"]\n')
    (directory / "a_helper.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w')\n")
    # `python -m` looks where it is started first.
    config = {"mcp.b": f'command = ["{sys.executable}", "-m", "a_helper"]\n', **section(tmp_path)}
    server = await start_server(**config)
    async with Api(server) as api:
        await api.open(directory)
        await api.prompt(await api.new_session(), "go")
        call = await model.next_call(30)
        assert {name for name in told_tools(call.request) if name.startswith("mcp_")} >= {"mcp_a_echo"}
        states = {state["name"]: state["state"] for state in await api.ok("GET", "W/mcp/states")}
        assert states == {"a": "connected", "b": "error"}
        assert not (tmp_path / "touched").exists()
        await server.kill()  # or it would wait for the run


async def test_a_cancel_while_servers_start_is_not_kept_waiting(
    start_server: Starter, directory: Path, tmp_path: Path, model: ModelServer
) -> None:
    """B04: a run that nobody wants any more would hold its session until a server that hangs is given up."""
    server = await start_server(**section(tmp_path, "silent", more='connect_timeout = "60s"'))
    async with Api(server) as api:
        await api.open(directory)
        run_id = (await api.prompt(await api.new_session(), "go"))["run_id"]
        await until((tmp_path / "pid").exists, "the MCP server starts")
        await api.ok("POST", f"W/runs/{run_id}/cancel")
        assert (await api.run_over(run_id))["state"] == "canceled"


async def test_a_reload_takes_a_server_away(
    start_server: Starter, directory: Path, tmp_path: Path, model: ModelServer
) -> None:
    """A person who takes a server out of the config would find it still running, with their key in it."""
    server: ServerProcess = await start_server(**section(tmp_path))
    async with Api(server) as api:
        await api.open(directory)
        await api.prompt(await api.new_session(), "go")
        await model.next_call(30)
        text = server.config_file.read_text()
        server.config_file.write_text(text[: text.index("[mcp.a]")])
        await api.ok("POST", "W/agent/update")
        assert await api.ok("GET", "W/mcp/states") == []
        pids = set(map(int, (tmp_path / "pid").read_text().split()))
        await until(lambda: not alive(pids), "the MCP server is gone", 5)
        await server.kill()  # or it would wait for the run
