"""bash, and what a command may see: real processes through a real guardian."""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from bash_kit import a_shell, run

from windlass import limits
from windlass.tools.bash import Bash
from windlass.tools.environment import child_environment
from windlass.tools.files import WorkspaceRoot
from windlass.tools.output import HeadAndTail
from windlass.wire.tools import Tool, ToolError


@pytest.fixture
async def bash(root: WorkspaceRoot) -> AsyncIterator[Bash]:
    async with a_shell(root) as shell:
        yield shell.bash


def sleepers(mark: str) -> int:
    """How many processes have the mark on their command line."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                count += f"\0{mark}\0".encode() in Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                pass
    return count


@pytest.fixture
def mark() -> str:
    return f"0.{secrets.randbelow(10**15):015d}"


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


async def test_output_and_exit_code_come_back(bash: Bash) -> None:
    """The model would not know whether its command worked."""
    output = await run(bash, "echo out; echo err >&2; exit 3")
    assert output.content == "out\nerr\n[exit code 3]"
    assert json.loads(output.metadata)["exit_code"] == 3


async def test_a_command_without_output_says_so(bash: Bash) -> None:
    """An empty answer looks like a tool that is broken."""
    assert (await run(bash, "true")).content == "(no output)\n[exit code 0]"


async def test_it_runs_in_the_workspace(bash: Bash, workspace: Path) -> None:
    """A relative path in the command would be another file than the one the agent sees."""
    assert (await run(bash, "pwd")).content == f"{workspace}\n[exit code 0]"


async def test_there_is_no_input(bash: Bash) -> None:
    """A command that asks would wait for an answer until the time limit."""
    assert (await run(bash, "read line || echo no input")).content == "no input\n[exit code 0]"


async def test_long_output_keeps_its_head_and_tail(bash: Bash) -> None:
    """The error is at the end, the cause at the beginning; the middle may go, and must be said to be gone."""
    output = await run(bash, "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert output.content.startswith("first\n")
    assert output.content.endswith("x\nlast\n[exit code 0]")
    assert "left out" in output.content
    assert len(output.content) < limits.TOOL_OUTPUT_CHARACTERS + 200
    assert json.loads(output.metadata)["output_bytes"] == 5_000_012


async def test_a_command_over_its_time_is_ended(bash: Bash, mark: str) -> None:
    """A run would hang on a server that was started in the foreground."""
    output = await run(bash, f"echo up; sleep 3600 {mark}", timeout_seconds=0.3)
    assert output.content == "up\n[ended after the time limit of 0.3 s; exit code -15]"
    assert (output.is_error, sleepers(mark)) == (True, 0)


async def test_a_cancel_ends_the_whole_tree_before_it_goes_on(bash: Bash, mark: str) -> None:
    """B18: a cancelled run would go on writing files."""
    sleep = f"sleep 3600 {mark}"
    task = asyncio.create_task(run(bash, f"(setsid {sleep} &) >/dev/null 2>&1; {sleep}"))
    await until(lambda: sleepers(mark) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sleepers(mark) == 0


async def test_a_second_cancel_is_obeyed_at_once_and_the_tree_still_dies(bash: Bash, mark: str) -> None:
    """A command that ignores signals would hold up a run that must stop now (B58)."""
    task = asyncio.create_task(run(bash, f"trap '' TERM; sleep 3600 {mark}"))
    await until(lambda: sleepers(mark) == 1)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < limits.KILL_GRACE_SECONDS
    await until(lambda: sleepers(mark) == 0)


async def test_what_a_command_leaves_in_the_background_ends_with_it(bash: Bash, mark: str) -> None:
    """B36: every `server &` would stay."""
    output = await run(bash, f"sleep 3600 {mark} & echo started")
    assert (output.content, sleepers(mark)) == ("started\n[exit code 0]", 0)


async def test_a_command_sees_no_credential(bash: Bash, monkeypatch: pytest.MonkeyPatch, root: WorkspaceRoot) -> None:
    """A30, A39: `env` would print the user's keys into the conversation."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    monkeypatch.setenv("WINDLASS_TOKEN", "canary")
    assert "canary" not in str(child_environment(os.environ))
    output = await run(bash, "env; cat /proc/$PPID/environ | tr '\\0' '\\n'")
    assert "canary" not in output.content
    assert "TERM=dumb" in output.content


def test_the_environment_keeps_what_programs_need() -> None:
    """Without HOME or a locale half of the user's tools would misbehave."""
    environ = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "TZ": "UTC",
        "VIRTUAL_ENV": "/v",
        "SECRET": "x",
        "TERM": "xt",
    }
    kept = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "TZ": "UTC", "VIRTUAL_ENV": "/v", "TERM": "dumb"}
    assert child_environment(environ) == kept


def test_the_ask_shows_exactly_what_is_run_and_that_it_is_unconfined(bash: Bash, workspace: Path) -> None:
    """I10: people would approve another command, or believe that it cannot do harm."""
    tool: Tool = bash
    ask = tool.plan({"command": "make  test", "timeout_seconds": 5, "description": "Run the tests"}, "call").ask
    assert (ask.action, ask.resource, ask.path, ask.confined) == ("execute", "make  test", str(workspace), False)
    assert "unconfined" in ask.description
    assert ask.params == {
        "command": "make  test",
        "working_directory": str(workspace),
        "timeout_seconds": 5.0,
        "background": False,
        "description": "Run the tests",
    }


@pytest.mark.parametrize(
    "arguments",
    [{}, {"command": ""}, {"command": "a\0b"}, {"command": "a", "timeout_seconds": 0}, {"command": "a", "cwd": "/"}],
)
def test_bad_arguments_are_refused(bash: Bash, arguments: dict[str, Any]) -> None:
    """An unknown argument would be ignored, and the model believe that it counts."""
    with pytest.raises(ToolError):
        bash.plan(arguments, "call")


async def test_a_workspace_that_is_gone_is_an_error(bash: Bash, workspace: Path) -> None:
    """The command would run somewhere else, or the run fail for no visible reason."""
    os.rmdir(workspace)
    with pytest.raises(ToolError, match="cannot be entered"):
        await run(bash, "true")


def test_it_works_on_uvloop(root: WorkspaceRoot) -> None:
    """The server runs on uvloop and the tests do not."""

    async def story() -> None:
        async with a_shell(root) as shell:
            assert (await run(shell.bash, "echo a; sleep 0.05; echo b")).content == "a\nb\n[exit code 0]"
            assert "left out" in (await run(shell.bash, "head -c 3000000 /dev/zero | tr '\\0' x")).content

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


# -- the bounded buffer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_head_and_tail_are_kept_whatever_the_pieces(piece: int) -> None:
    """What is kept would depend on how the pipe happened to cut the output."""
    data = bytes(range(48, 98))
    kept = HeadAndTail(20)
    for start in range(0, len(data), piece):
        kept.add(data[start : start + piece])
    assert kept.text() == f"{data[:10].decode()}\n[... 30 bytes left out ...]\n{data[-10:].decode()}"


def test_a_character_across_the_middle_stays_whole() -> None:
    """Output that fits exactly would have a broken letter in it."""
    kept = HeadAndTail(6)
    kept.add("aaüa".encode())
    assert kept.text() == "aaüa"
