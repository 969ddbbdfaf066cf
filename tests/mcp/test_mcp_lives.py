"""The life of an MCP server: started when it is needed, lost, started again with a limit, gone when it should be."""

import asyncio
import os
from pathlib import Path

import pytest
from mcp_world import SECONDS, McpWorld, is_alive, plain, written

from windlass.mcp.place import Place
from windlass.mcp.restarts import Restarts
from windlass.mcp.server import Server
from windlass.testing.server_process import until
from windlass.wire.delegation import CallMcpTool, ListMcpTools


async def test_no_server_is_started_before_a_run_asks(tmp_path: Path) -> None:
    """Everyone who opens a directory to look at it would start a dozen processes."""
    async with McpWorld(plain("a", tmp_path)) as world:
        assert [(state.name, state.state) for state in world.servers.states] == [("a", "stopped")]
        assert not (tmp_path / "pid").exists()
        await world.tools()
        assert [state.state for state in world.servers.states] == ["connected"]
    assert [told.state for told in world.told] == ["starting", "connected", "stopped"]


async def test_runs_of_one_workspace_share_a_server_and_workspaces_do_not(tmp_path: Path) -> None:
    """What one workspace's server knows would be told to another, or every run would wait for a start."""
    async with McpWorld(plain("a", tmp_path)) as world:
        await asyncio.gather(world.tools(), world.tools())
        other = world.hub.open("/tmp", lambda state: None)
        await other.answer(ListMcpTools())
        assert len(set((tmp_path / "pid").read_text().split())) == 2


async def test_a_disabled_server_is_never_started(tmp_path: Path) -> None:
    """`disabled` is what a person writes when something is wrong with it."""
    async with McpWorld(plain("a", tmp_path, disabled=True)) as world:
        assert await world.tools() == []
        assert [state.state for state in world.servers.states] == ["disabled"]
        reply = await world.servers.answer(CallMcpTool("a", "echo", {}))
        assert "no MCP server 'a'" in reply.error
        assert not (tmp_path / "pid").exists()


async def test_dead_servers_together_delay_a_run_by_no_more_than_their_time_and_no_other_server(tmp_path: Path) -> None:
    """One server that hangs would make every run of its user hang, and three of them three times as long."""
    places = {name: tmp_path / name for name in "abcd"}
    for directory in places.values():
        directory.mkdir()
    silent = [plain(name, places[name], "silent", connect_seconds=1.0) for name in "acd"]
    async with McpWorld(*silent, plain("b", places["b"])) as world:
        await world.call("echo", server="b")  # the SDK is loaded by now
        loop = asyncio.get_running_loop()
        before = loop.time()
        assert {tool.server for tool in await world.tools()} == {"b"}
        assert loop.time() - before < 2.8, "one after the other they take three seconds"
        failed = await world.until("error", server="a")
        assert failed.error == "It was not ready within 1 s; a larger connect_timeout may help."
        assert not is_alive(int((places["a"] / "pid").read_text()))


async def test_a_command_that_does_not_exist_says_so(tmp_path: Path) -> None:
    """A typing error in the config would look as if the server had no tools."""
    spec = plain("a", tmp_path)
    object.__setattr__(spec, "command", ("/there/is/no/such", "argument"))
    async with McpWorld(spec) as world:
        assert await world.tools() == []
        assert "No such file or directory" in (await world.until("error")).error


async def test_a_server_that_refuses_us_says_why_without_its_secrets(tmp_path: Path) -> None:
    """A39: states are shown to everyone who is attached, and kept in the log."""
    spec = plain("a", tmp_path, "refuse", env={"A_KEY": "open-sesame"})
    async with McpWorld(spec) as world:
        assert await world.tools() == []
        assert (await world.until("error")).error == "The key *** is too old."


async def test_it_dies_in_a_call_and_is_started_again(tmp_path: Path) -> None:
    """One crash of a server would take its tools away until Windlass is restarted."""
    async with McpWorld(plain("a", tmp_path)) as world:
        await world.tools()
        output = await world.call("die")
        assert output.is_error and "not known" in output.content
        assert (await world.call("echo", x=1)).content == '{"x": 1}'
        assert [told.state for told in world.told] == ["starting", "connected", "starting", "connected"]
        assert world.told[2].error == "It ended with exit code 3."


async def test_what_it_says_on_its_way_out_is_logged_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A39: or nobody could find out why a server dies; and its key would be in the log."""
    async with McpWorld(plain("a", tmp_path, "token=hunter2222", env={"A_KEY": "open-sesame"})) as world:
        await world.tools()
        await world.call("die")
        await world.until("connected", after=3)
    out = capsys.readouterr().out
    assert "died of ***" in out
    assert "open-sesame" not in out and "hunter2222" not in out


async def test_a_server_that_dies_again_and_again_is_left_alone(tmp_path: Path) -> None:
    """It would be started for ever, with everything that a start of it does."""
    async with McpWorld(plain("a", tmp_path)) as world:
        told: list[str] = []
        place = Place("/tmp", world.guardian, {"PATH": os.environ["PATH"]})
        restarts = Restarts(limit=3, base_seconds=0.01)
        server = Server(plain("a", tmp_path), place, lambda state: told.append(state.state), restarts)
        for _ in range(3):
            assert (await server.call("die", {})).is_error
        output = await server.call("echo", {})
        assert "3 times in 300 s" in output.content and "reload the configuration" in output.content
        assert told == ["starting", "connected"] * 3 + ["error"]
        server.try_again()
        assert not (await server.call("echo", {})).is_error
        await asyncio.wait({server.close()})


async def test_one_that_cannot_be_started_again_is_told_as_an_error(tmp_path: Path) -> None:
    """Clients would show it as starting for ever."""
    async with McpWorld(plain("a", tmp_path, "once")) as world:
        await world.tools()
        await world.call("die")
        assert "exit code 7" in (await world.until("error")).error
        assert await world.tools() == []


@pytest.mark.parametrize(
    ("does_end", "told"), [(True, "It ended with exit code 7."), (False, "It does not read its input any more.")]
)
async def test_one_that_stops_reading_is_told_by_its_exit_code_if_it_ends(
    does_end: bool, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that is seen of a server that ends is a write that fails: a person would look for the wrong fault."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with McpWorld() as world:
        place = Place("/tmp", world.guardian, {"PATH": os.environ["PATH"]})
        server = Server(plain("a", tmp_path), place, lambda state: None)
        assert (await server.call("deaf", {})).content == "what?"
        assert server._connection is not None
        ending = server._connection.ending
        if does_end:
            monkeypatch.setattr("windlass.mcp.stdio._EXIT_SECONDS", SECONDS)  # a busy machine is slow to end it
        lost = asyncio.create_task(server.call("echo", {}))
        await until(lambda: ending.near, "the write has failed")
        if does_end:
            os.close(os.open(gate, os.O_WRONLY))
        await asyncio.wait_for(ending.wait(), SECONDS)
        assert ending.reason == told
        assert (await lost).is_error
        await asyncio.wait({server.close()})


async def test_a_cancel_is_told_to_the_server_and_its_answer_is_not_waited_for(tmp_path: Path) -> None:
    """B18: a run that was cancelled would wait for a server that takes its time, or that server would go on."""
    async with McpWorld(plain("a", tmp_path)) as world:
        call = asyncio.create_task(world.call("wait"))
        number = await written(tmp_path / "waiting")
        call.cancel()
        await asyncio.wait({call}, timeout=1.0)
        assert call.cancelled()
        assert await written(tmp_path / "cancelled") == number


async def test_a_call_that_takes_too_long_is_ended_at_both_ends(tmp_path: Path) -> None:
    """A run would wait for a server that hangs until the run itself may not go on."""
    async with McpWorld(plain("a", tmp_path, call_seconds=0.3)) as world:
        output = await world.call("wait")
        assert output.is_error and "did not answer within 0.3 s" in output.content
        await written(tmp_path / "cancelled")


async def test_changed_tools_are_told_to_the_next_run(tmp_path: Path) -> None:
    """A server that learns of new tools while it runs would have to be restarted by hand."""
    async with McpWorld(plain("a", tmp_path)) as world:
        before = len(await world.names())
        await world.call("grow")
        await world.until("connected", after=2)
        assert "grown" in await world.names()
        assert world.servers.states[0].tool_count == before + 1


async def test_closing_the_workspace_says_goodbye_and_leaves_no_process(tmp_path: Path) -> None:
    """Every workspace that was ever opened would keep its servers."""
    async with McpWorld(plain("a", tmp_path)) as world:
        await world.tools()
        world.servers.close()
        await written(tmp_path / "goodbye")
        pid = int((tmp_path / "pid").read_text())
    assert not is_alive(pid)


async def test_a_call_that_goes_on_when_the_workspace_closes_ends(tmp_path: Path) -> None:
    """The end of a run would wait for a server that is gone."""
    async with McpWorld(plain("a", tmp_path)) as world:
        call = asyncio.create_task(world.call("wait"))
        await written(tmp_path / "waiting")
        world.servers.close()
        assert (await asyncio.wait_for(call, 5)).is_error


async def test_a_reload_stops_what_changed_and_leaves_the_rest_alone(tmp_path: Path) -> None:
    """Whoever mends one server would lose the sessions of all others, or would have to restart Windlass."""
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    async with McpWorld(plain("a", first), plain("b", second)) as world:
        await world.tools()
        world.hub.configure([plain("a", first), plain("b", second, "other")])
        assert {state.name: state.state for state in world.servers.states} == {"a": "connected", "b": "stopped"}
        await world.tools()
        assert (len((first / "pid").read_text().split()), len((second / "pid").read_text().split())) == (1, 2)
        world.hub.configure([plain("b", second, "other")])
        assert [state.name for state in world.servers.states] == ["b"]
        reply = await world.servers.answer(CallMcpTool("a", "echo", {}))
        assert "no MCP server 'a'" in reply.error


async def test_nothing_of_a_spec_is_in_its_repr() -> None:
    """A39: a repr ends up in logs and tracebacks."""
    spec = plain("a", Path("/x"), "token=hunter2222", env={"A": "open-sesame"}, headers={"B": "abc-secret"})
    assert repr(spec) == "ServerSpec(name='a', disabled=False)"


def test_restarts_are_paced_and_forgotten_in_time() -> None:
    """A server would be started in a tight loop, or never again."""
    restarts = Restarts(limit=3, window_seconds=100, base_seconds=1)
    assert restarts.pause(0) == 0
    restarts.ended(0)
    assert (restarts.pause(0), restarts.pause(5)) == (1, 0)
    restarts.ended(10)
    assert (restarts.pause(10), restarts.given_up(10)) == (2, False)
    restarts.ended(20)
    assert (restarts.pause(20), restarts.given_up(20)) == (80, True)
    assert (restarts.pause(100), restarts.given_up(100)) == (0, False)
