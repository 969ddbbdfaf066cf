"""Where commands run: `cd` lasts, and what was approved for one directory does not run in another."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bash_kit import Shell, a_run, a_shell, plan, run, some_jobs

from windlass.tools.bash import Bash
from windlass.tools.files import WorkspaceRoot
from windlass.tools.whereabouts import last_directory, take_report
from windlass.wire.messages import Message, ToolResult, ToolResultData
from windlass.wire.tools import ToolError, ToolOutput


@pytest.fixture
async def shell(root: WorkspaceRoot) -> AsyncIterator[Shell]:
    async with a_shell(root) as shell:
        yield shell


@pytest.fixture
def bash(shell: Shell) -> Bash:
    return shell.bash


def cwd(output: ToolOutput) -> str:
    directory: str = json.loads(output.metadata)["cwd"]
    return directory


async def test_cd_lasts_for_the_next_command(bash: Bash, workspace: Path) -> None:
    """A model that went into a directory would work in another one, and believe what it sees there."""
    output = await run(bash, "mkdir -p a/b && cd a/b")
    assert cwd(output) == f"{workspace}/a/b"
    assert (await run(bash, "pwd")).content == f"{workspace}/a/b\n[exit code 0]"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("cd /usr; exit 3", 3),
        ("set -e; cd /usr; false", 1),
        ("cd /usr && no-such-command-here", 127),
        ("cd /usr; set -u; echo $undefined_thing", 127),
        ("cd /usr; (cd /; exit 4)", 4),
        ("cd /usr; trap 'true' TERM; false", 1),
        ("exec >/dev/null 2>&1; cd /usr; false", 1),
        ("pwd() { echo /nowhere; }; cd /usr; true", 0),
        ("cd /usr; echo $# $0 >&2; exit $#", 0),
    ],
)
async def test_the_place_is_told_however_the_command_ends(bash: Bash, command: str, code: int) -> None:
    """After a command that failed the next would run somewhere else than the shell stood; or its exit code be ours."""
    output = await run(bash, command)
    assert (json.loads(output.metadata)["exit_code"], cwd(output)) == (code, "/usr")


@pytest.mark.parametrize("command", ["cd /usr; exec true", "cd /usr; trap 'true' EXIT", "cd /usr; kill -9 $$"])
async def test_a_command_that_cannot_tell_changes_nothing(bash: Bash, workspace: Path, command: str) -> None:
    """We would guess where it stood."""
    output = await run(bash, command)
    assert cwd(output) == str(workspace)


async def test_nothing_of_how_the_place_is_told_is_seen(bash: Bash) -> None:
    """The output would hold lines of ours, or the command find arguments and variables that are not its own."""
    output = await run(bash, 'printf "[%s]" "$0" "$#" "$*"; compgen -v | grep -i windlass; ls -A')
    assert output.content == "[bash][0][]\n[exit code 0]"


@pytest.mark.parametrize("command", ["-x", "# nothing\necho a", "if", "echo 'a\nb' \"$(echo c)\" # d", "  echo  a  ;"])
async def test_what_is_run_is_what_was_approved(bash: Bash, command: str) -> None:
    """A26: the bytes that people read would not be the bytes that the shell reads."""
    made = plan(bash, command)
    assert made.ask.resource == made.command.line == made.command.argv[-2] == command
    plain = ["bash", "-c", "--", command]
    expected = await asyncio.to_thread(subprocess.run, plain, capture_output=True, text=True)
    shown = (await made.run()).content.rpartition("\n")[0]
    said = (expected.stdout + expected.stderr).replace("-c: ", "").rstrip("\n")
    assert shown.replace("eval: ", "") == (said or "(no output)")


async def test_the_ask_names_the_directory_also_for_what_is_remembered(bash: Bash, workspace: Path) -> None:
    """A27 A28: an "always" for `rm -rf *` in build/ would cover it in the home directory."""
    first = plan(bash, "ls")
    await run(bash, "mkdir sub; cd sub")
    second = plan(bash, "ls")
    assert (first.ask.path, first.ask.action) == (str(workspace), "execute")
    assert (second.ask.path, second.ask.action) == (f"{workspace}/sub", f"execute in {workspace}/sub")
    assert second.ask.params["working_directory"] == f"{workspace}/sub"


@pytest.mark.parametrize("swap", ["another directory", "a link"])
async def test_a_directory_that_was_swapped_after_the_approval_is_refused(
    bash: Bash, workspace: Path, swap: str
) -> None:
    """A27: what was approved for one directory would run in another."""
    await run(bash, "mkdir sub; cd sub")
    made = plan(bash, "touch here")
    (workspace / "sub").rename(workspace / "moved")
    if swap == "a link":
        (workspace / "sub").symlink_to("/usr")
    else:
        (workspace / "sub").mkdir()
    with pytest.raises(ToolError, match="not the directory any more"):
        await made.run()
    assert not (workspace / "sub/here").exists() and not (workspace / "moved/here").exists()


async def test_what_was_approved_stays_as_it_was(bash: Bash, workspace: Path) -> None:
    """A27: a plan that follows `cd` or the environment of later calls would not be the one people saw."""
    made = plan(bash, "pwd; echo $LC_NAME")
    await run(bash, "cd /usr")
    bash._environment["LC_NAME"] = "changed"
    assert (await made.run()).content == f"{workspace}\n[exit code 0]"


async def test_a_place_that_is_gone_is_left_for_the_root_and_said(bash: Bash, workspace: Path) -> None:
    """Every command would fail until someone deletes the session."""
    await run(bash, "mkdir sub; cd sub")
    (workspace / "sub").rmdir()
    assert plan(bash, "rm -rf *").place.path == str(workspace)  # declined: what follows must say it again
    output = await run(bash, "pwd")
    note = f"[{workspace}/sub is gone, so this ran in {workspace}.]"
    assert output.content == f"{workspace}\n{note}\n[exit code 0]"
    assert note not in (await run(bash, "pwd")).content


async def test_a_new_run_goes_on_where_the_last_one_stood(root: WorkspaceRoot) -> None:
    """Between two prompts, or after a restart, the shell would jump back."""
    async with some_jobs() as store:
        output = await run(a_run(store, root).bash, "cd /usr/lib")
        directory = last_directory([result("bash", output.metadata)])
        assert (await run(a_run(store, root, directory=directory).bash, "pwd")).content == "/usr/lib\n[exit code 0]"


def result(tool: str, metadata: str) -> Message:
    data = ToolResultData("call", tool, "", metadata, is_error=False)
    return Message("msg", "tool", "ses", [ToolResult(data)], "", "", 0, 0)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], ""),
        ([("bash", '{"cwd":"/a"}'), ("bash", '{"cwd":"/b"}'), ("view", '{"cwd":"/c"}')], "/b"),
        ([("bash", '{"cwd":"/a"}'), ("bash", "{}"), ("bash", ""), ("bash", "nonsense"), ("bash", "[1]")], "/a"),
        ([("bash", '{"cwd":"relative"}'), ("bash", '{"cwd":7}'), ("bash", '{"cwd":"/a\\u0000b"}')], ""),
    ],
)
def test_the_newest_result_that_tells_decides(results: list[tuple[str, str]], expected: str) -> None:
    """A result of another tool, or of a version that told nothing, would move the shell."""
    assert last_directory([result(*one) for one in results]) == expected


@pytest.mark.parametrize("thing", ["fifo", "link", "flood", "bytes", "relative", "directory", "nothing"])
def test_a_report_that_a_command_tampered_with_does_no_harm(tmp_path: Path, thing: str) -> None:
    """A FIFO in its place would hang the run, a link have us read another file."""
    report = tmp_path / "report"
    (tmp_path / "other").write_text("/usr\n")
    match thing:
        case "fifo":
            os.mkfifo(report)
        case "link":
            report.symlink_to("other")
        case "flood":
            report.write_text("/" * 100_000)
        case "bytes":
            report.write_bytes(b"/\xff\n")
        case "relative":
            report.write_text("usr\n")
        case "directory":
            report.mkdir()
    assert take_report(str(report)) == ""


@pytest.mark.parametrize("how", ["cd /usr; exec true", "mkdir -p $'b\\xff'; cd b*", "pushd /usr; trap true EXIT"])
async def test_a_move_that_is_not_known_of_is_said(bash: Bash, workspace: Path, how: str) -> None:
    """A model that believes it is in one directory would have `rm -rf *` run in another."""
    output = await run(bash, how)
    assert f"[Where the shell stood in the end is not known; the next command starts in {workspace}.]" in output.content


async def test_a_command_that_moves_nowhere_has_no_such_note(bash: Bash) -> None:
    """Every command that calls exec would be followed by a line that helps nobody."""
    assert (await run(bash, "exec echo a")).content == "a\n[exit code 0]"


async def test_a_quote_in_the_name_of_the_temporary_directory_does_no_harm(
    root: WorkspaceRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command would end with an error of ours, or run what the name of a directory says."""
    strange = tmp_path / 'it\'s $(touch run) "here"'
    strange.mkdir()
    monkeypatch.setenv("TMPDIR", str(strange))
    async with a_shell(root) as shell:
        output = await run(shell.bash, "cd /usr")
        assert (output.content, cwd(output)) == ("(no output)\n[exit code 0]", "/usr")
