"""The commands that look and act once: what they print, for people and for scripts, and how they fail."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from fake_windlass import FakeWindlass, a_message, a_permission, a_run, finish, refusal, text
from windlass_program import Program

import windlass
from windlass import limits
from windlass.cli.main import COMMANDS
from windlass.testing import canary
from windlass.testing.server_process import ServerProcess

Start = Callable[..., Awaitable[Program]]


async def run(start: Start, *arguments: str, from_nothing: bool = False) -> Program:
    program = await start(*arguments, from_nothing=from_nothing)
    await program.ended()
    return program


def here(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The program without any server."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(windlass.__file__).parent.parent), **variables}
    environment |= canary.ENVIRONMENT
    if arguments[:2] == ("-m", "windlass") and ServerProcess.stem is not None:
        ended = ServerProcess.stem.run(["windlass", *arguments[2:]], environment)
    else:
        command = [sys.executable, *arguments]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    canary.check_text(ended.stdout + ended.stderr, "what the program printed")
    return ended


# -- help and errors --


def test_help_loads_no_http_library() -> None:
    """`windlass --help` is the first impression; it must not take a second."""
    heavy = ["aiohttp", "litestar", "uvicorn", "msgspec"]
    code = (
        f"import sys\nfrom windlass.cli.main import main\nmain(['--help']) or 0\nprint(set({heavy}) & set(sys.modules))"
    )
    assert here("-c", code).stdout.endswith("set()\n")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_a_help_with_an_example(command: str) -> None:
    """Who does not know a command asks it."""
    result = here("-m", "windlass", command, "--help")
    assert result.returncode == 0
    assert "Example" in result.stdout and f"windlass {command}" in result.stdout


def test_a_wrong_option_is_one_line_and_code_two() -> None:
    """A script tells a wrong call from a failure by the code."""
    result = here("-m", "windlass", "sessions", "--nonsense")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("windlass: ") and "--help" in result.stderr


def test_without_a_server_one_line_says_what_to_do(tmp_path: Path) -> None:
    """The most common mistake of all."""
    result = here("-m", "windlass", "sessions", "--no-start", "--data-dir", str(tmp_path))
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "Start one with `windlass serve`" in result.stderr


async def test_a_refusal_of_the_server_is_one_line(server: FakeWindlass, start: Start) -> None:
    """The server's words, not a traceback; and none of its bytes reach the terminal raw."""
    server.refuse("/sessions", refusal(403, "This token may only look.\x1b[2J"))
    program = await run(start, "sessions")
    assert program.process.returncode == 1
    assert program.err == "windlass: This token may only look.<U+001B>[2J\n"


async def test_a_reader_that_has_enough_is_not_an_error(server: FakeWindlass, start: Start) -> None:
    """`windlass sessions | head -1`: a traceback would follow every such pipe."""
    for number in range(3000):
        server.add_session(f"ses_{number}", "A title of some length, to fill the pipe")
    reader, writer = os.pipe()
    os.close(reader)
    program = await start("sessions", stdout=writer, from_nothing=True)  # it is about what happens at its very end
    os.close(writer)
    await program.ended()
    assert program.err == ""


def test_serving_with_half_of_tls_is_a_usage_error() -> None:
    """Else a server meant for HTTPS would quietly serve HTTP."""
    assert "go together" in here("-m", "windlass", "serve", "--tls-cert", "cert.pem").stderr


# -- sessions --


async def test_sessions_are_listed(server: FakeWindlass, start: Start) -> None:
    """Titles come from models and other people, so they are shown safely (A41)."""
    server.add_session("ses_1", "Red \x1b[31m title\r\nsecond line")
    program = await run(start, "sessions")
    assert "ses_1" in program.out and "Red <U+001B>[31m title<U+000D>\\nsecond line" in program.out


async def test_sessions_as_json_are_for_scripts(server: FakeWindlass, start: Start) -> None:
    """A bare array, as on the wire."""
    server.add_session("ses_1", "One")
    program = await run(start, "sessions", "--json", from_nothing=True)
    assert [session["title"] for session in json.loads(program.out)] == ["One"]


async def test_a_session_is_shown_by_the_beginning_of_its_id(server: FakeWindlass, start: Start) -> None:
    """Nobody types 32 hexadecimal digits."""
    server.add_session("ses_abc", "One")
    server.messages["ses_abc"] = [a_message("m1", [text("Hello there."), finish()])]
    program = await run(start, "sessions", "show", "ses_a")
    assert "Hello there." in program.out


async def test_the_beginning_of_two_ids_names_neither(server: FakeWindlass, start: Start) -> None:
    """Deleting the wrong one of two cannot be undone."""
    server.add_session("ses_a1")
    server.add_session("ses_a2")
    program = await run(start, "sessions", "delete", "ses_a")
    assert program.process.returncode == 1 and "Give more of the id" in program.err
    assert len(server.sessions) == 2


async def test_a_session_is_renamed(server: FakeWindlass, start: Start) -> None:
    """The title everyone sees."""
    server.add_session("ses_1", "Old")
    await run(start, "sessions", "rename", "ses_1", "New")
    assert server.sessions["ses_1"]["title"] == "New"


async def test_a_session_is_deleted(server: FakeWindlass, start: Start) -> None:
    """B45."""
    server.add_session("ses_1")
    program = await run(start, "sessions", "delete", "ses_1")
    assert (program.process.returncode, server.sessions) == (0, {})


async def test_a_command_says_goodbye_for_good(server: FakeWindlass, start: Start) -> None:
    """B30 B34 R41: else every look at the list, or a reconnect that was under way, would keep the workspace open."""
    await run(start, "sessions")
    method, path = server.requests[-1]
    assert (method, path.startswith("/v1/clients/")) == ("DELETE", True)


# -- runs, cancel, permissions --


async def test_runs_are_listed_and_shown(server: FakeWindlass, start: Start) -> None:
    """What was asked, and what became of it."""
    server.runs["run_1"] = a_run("run_1", prompt="Do it", state="completed")
    listed = await run(start, "runs", from_nothing=True)
    shown = await run(start, "runs", "show", "run_1")
    assert "completed" in listed.out and "Do it" in shown.out


async def test_of_many_runs_the_last_are_listed(server: FakeWindlass, start: Start) -> None:
    """The run that somebody just started would be missing, and so would its id for `show` and `cancel`."""
    last = limits.RUNS_PER_PAGE + 1
    for number in range(last + 1):
        server.runs[f"run_{number:04}"] = a_run(f"run_{number:04}", prompt="Go", state="completed")
    listed = await run(start, "runs", "--limit", "2")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [f"run_{last - 1:04}", f"run_{last:04}"]


async def test_a_session_is_cancelled(server: FakeWindlass, start: Start) -> None:
    """B03: any client may."""
    server.add_session("ses_1")
    server.runs["run_1"] = a_run("run_1", state="running")
    program = await run(start, "cancel", "ses_1", "--json")
    assert json.loads(program.out) == {"canceled": ["run_1"]}


async def test_one_run_is_cancelled(server: FakeWindlass, start: Start) -> None:
    """B09."""
    cancelled: list[str] = []
    server.on_cancel = cancelled.append
    server.runs["run_1"] = a_run("run_1", state="running")
    server.runs["run_2"] = a_run("run_2", state="queued")
    await run(start, "cancel", "--run", "run_2")
    assert cancelled == ["run_2"]


def test_cancel_without_a_target_is_a_usage_error() -> None:
    """Guessing what to cancel would be worse than asking."""
    assert here("-m", "windlass", "cancel").returncode == 2


async def test_pending_permissions_are_listed_safely(server: FakeWindlass, start: Start) -> None:
    """A26."""
    server.pending = [a_permission("per_1", params={"command": "ls\u202e"})]
    program = await run(start, "permissions", from_nothing=True)
    assert "per_1" in program.out and "ls<U+202E>" in program.out


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        (["allow", "per_1"], "allow"),
        (["allow", "per_1", "--session"], "allow_session"),
        (["allow", "per_1", "--pattern", "npm test*"], "allow_session"),
        (["deny", "per_1"], "deny"),
    ],
)
async def test_a_permission_is_answered(server: FakeWindlass, start: Start, arguments: list[str], action: str) -> None:
    """B23 B26: from a script as from a screen."""
    server.pending = [a_permission("per_1")]
    program = await run(start, "permissions", *arguments)
    assert (program.process.returncode, server.grants) == (0, [("per_1", action)])
    assert server.patterns == ["npm test*" if "--pattern" in arguments else ""]


async def test_an_answer_that_came_too_late_is_said(server: FakeWindlass, start: Start) -> None:
    """Else a script would believe that its no counted."""
    server.pending = [a_permission("per_1")]
    server.resolved = False
    program = await run(start, "permissions", "deny", "per_1")
    assert program.process.returncode == 1 and "answered first" in program.err


# -- doctor and token --


async def test_the_doctor_finds_a_healthy_server(server: FakeWindlass, start: Start, tmp_path: Path) -> None:
    """One command that says whether it is the installation or something else."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    program = await run(start, "doctor", "--data-dir", str(data), from_nothing=True)
    assert program.process.returncode == 0
    assert "OK    Server: " in program.out and "is healthy" in program.out


def test_the_doctor_fails_on_a_data_directory_that_others_can_read(tmp_path: Path) -> None:
    """A13: the tokens are in there."""
    tmp_path.chmod(0o755)
    result = here("-m", "windlass", "doctor", "--data-dir", str(tmp_path), HOME=str(tmp_path))
    assert result.returncode == 1 and "chmod 700" in result.stdout


def test_the_doctor_names_what_is_wrong_in_the_config(tmp_path: Path) -> None:
    """Else the server's refusal to start would be the first sign."""
    file = tmp_path / "config.toml"
    file.write_text('model = "nowhere/x"')
    result = here("-m", "windlass", "doctor", "--config", str(file), "--data-dir", str(tmp_path / "data"))
    assert result.returncode == 1 and "nowhere" in result.stdout


def test_the_doctor_fails_on_a_server_that_does_not_answer(tmp_path: Path, unused_tcp_port: int) -> None:
    """A server file of a process that lives but does not listen."""
    content = {"url": f"http://127.0.0.1:{unused_tcp_port}", "token": "t", "pid": os.getpid()}
    (tmp_path / "server.json").touch(mode=0o600)
    (tmp_path / "server.json").write_text(json.dumps(content))
    tmp_path.chmod(0o700)
    result = here("-m", "windlass", "doctor", "--data-dir", str(tmp_path))
    assert result.returncode == 1 and "FAIL  Server: No server answers" in result.stdout


def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    """A10: who was given a key can lose it."""
    data = ("--data-dir", str(tmp_path / "data"))
    made = here("-m", "windlass", "token", "create", "phone", "--scope", "read", *data)
    assert made.returncode == 0 and len(made.stdout.strip()) >= 32
    listed = here("-m", "windlass", "token", "--json", *data)
    assert ("phone", "read") in {(token["name"], token["scope"]) for token in json.loads(listed.stdout)}
    assert made.stdout.strip() not in listed.stdout
    assert here("-m", "windlass", "token", "revoke", "phone", *data).returncode == 0
    assert here("-m", "windlass", "token", "revoke", "phone", *data).returncode == 1
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_a_token_name_that_is_taken_is_refused_on_one_line(tmp_path: Path) -> None:
    """Two people with one name could not be told apart, nor one of them revoked."""
    create = ("-m", "windlass", "token", "create", "phone", "--data-dir", str(tmp_path / "data"))
    here(*create)
    again = here(*create)
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (1, "", 1)
    assert "already a token named phone" in again.stderr
