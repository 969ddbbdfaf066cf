"""The examples do what they say, on a real server whose model follows a script. People begin with them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from windlass.client import Client
from windlass.testing.forked_program import ForkedProgram, fork
from windlass.testing.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS = 60.0  # the longest that anything here may take, on a machine that is full

SCRIPT = {
    "rules": [
        {"match": "write", "replies": [[{"tool": "write", "input": {"file_path": "a.txt", "content": "hi"}}]]},
        {"match": "+wrong", "replies": [[{"say": "app.py:1: this is wrong.\n\nVERDICT: changes"}]]},
        {"match": "+sneaky", "replies": [[{"tool": "bash", "input": {"command": "touch sneaked"}}], [{"say": "Hm."}]]},
        {"match": "+slow", "replies": [[{"say": "Let me think."}, {"hang": True}]]},
        {"match": "Review the change", "replies": [[{"say": "Fine.\n\nVERDICT: approve"}]]},
        {
            "match": "to a sub-agent of its own",
            "replies": [
                [
                    {"tool": "agent", "input": {"action": "start", "prompt": "Describe one."}},
                    {"tool": "agent", "input": {"action": "start", "prompt": "Describe two."}},
                ],
                [{"tool": "agent", "input": {"action": "wait"}}],
                [{"say": "Both are described."}],
            ],
        },
        {"match": "Describe one", "replies": [[{"say": "It is the first."}]]},
        {"match": "Describe two", "replies": [[{"say": "It is the second."}]]},
        {"match": "Hello", "replies": [[{"say": "Good morning."}]]},
        {"match": "*", "replies": [[{"say": "No more."}]]},
    ]
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerProcess]:
    """One for all examples; each has a project of its own."""
    directory = tmp_path_factory.mktemp("examples")
    script = directory / "script.json"
    script.write_text(json.dumps(SCRIPT))
    config = f'model = "test/model"\n[providers.test]\ntype = "scripted"\nscript = "{script}"\n'
    async with ServerProcess(directory / "server", config=config) as server:
        (directory / "token").write_text(server.token)
        (directory / "token").chmod(0o600)
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def files(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir())


async def start(server: ServerProcess, program: str, *arguments: str) -> ForkedProgram:
    """The file as it is, run by a Python that has loaded the SDK already."""
    token_file = str(server.directory.parent / "token")
    environment = {**os.environ, "WINDLASS_URL": server.url, "WINDLASS_TOKEN_FILE": token_file}
    argv = [str(EXAMPLES / program), *arguments]
    assert ServerProcess.stem is not None
    return await fork(ServerProcess.stem, argv, environment, stdin=asyncio.subprocess.PIPE, is_script=True)


async def run(server: ServerProcess, program: str, *arguments: str, input: str = "") -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    process = await start(server, program, *arguments)
    output, errors = await asyncio.wait_for(process.communicate(input.encode()), SECONDS)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


@asynccontextmanager
async def running(server: ServerProcess, program: str, *arguments: str) -> AsyncIterator[ForkedProgram]:
    """A program that runs until it is interrupted."""
    process = await start(server, program, *arguments)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), SECONDS)


async def line(process: ForkedProgram) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode().strip()


async def test_the_chat_bot_keeps_one_session_and_asks_before_it_acts(server: ServerProcess, project: Path) -> None:
    """B23: a bot that people build from it would forget what was said, or act without being asked."""
    typed = "Hello\n\nwrite it\ny\n+sneaky\nn\n/quit\n"
    code, output, errors = await run(server, "chat_bot.py", str(project), input=typed)
    assert (code, errors) == (0, "")
    assert "Good morning." in output
    assert output.count("May it use write") == output.count("May it use bash") == 1
    assert files(project) == ["a.txt"]
    async with Client(server.url, server.token) as client:
        (session,) = await (await client.open(project)).sessions()
        messages = await (await client.open(project)).messages(session.id)
        await client.retire()
    assert [message.text for message in messages if message.role == "user"] == ["Hello", "write it", "+sneaky"]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ("+fine", 0, "VERDICT: approve"),
        ("+wrong", 1, "app.py:1: this is wrong."),
        ("+sneaky", 2, "Hm."),
    ],
)
async def test_the_reviewer_decides_by_its_exit_code_and_changes_nothing(
    server: ServerProcess, project: Path, change: str, code: int, said: str
) -> None:
    """A pipeline would let everything through, or a change could make its reviewer run commands."""
    diff = f"--- a/app.py\n+++ b/app.py\n{change}\n"
    ended, output, errors = await run(server, "ci_reviewer.py", "-C", str(project), "--max-cost", "1", input=diff)
    assert (ended, errors) == (code, "completed, 0.0000\n")
    assert said in output
    assert files(project) == []


async def test_the_reviewer_gives_up_in_time_and_ends_its_run(server: ServerProcess, project: Path) -> None:
    """A pipeline would hang, or leave a run behind that costs on."""
    arguments = ("-C", str(project), "--timeout", "0.2")
    code, _, errors = await run(server, "ci_reviewer.py", *arguments, input="+slow\n")
    assert (code, errors) == (2, "canceled, 0.0000\n")


async def test_the_reviewer_reads_a_change_from_git_and_says_when_there_is_none(
    server: ServerProcess, project: Path
) -> None:
    """It would review nothing, and approve it."""
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "empty"]):
        identity = ["-c", "user.name=tester", "-c", "user.email=tester@localhost"]
        git = await asyncio.create_subprocess_exec("git", "-C", str(project), *identity, *command)
        assert await git.wait() == 0
    arguments = ("-C", str(project), "--since", "HEAD")
    assert await run(server, "ci_reviewer.py", *arguments) == (2, "", "There is nothing to review.\n")


async def test_approving_works_from_another_process_by_a_rule(server: ServerProcess, project: Path) -> None:
    """B23 B24: a run that waits for a person would wait although somebody watches elsewhere."""
    async with Client(server.url, server.token) as client:
        workspace = await client.open(project)
        waiting = await workspace.prompt((await workspace.create_session()).id, "write it")
        async with running(
            server, "approve_elsewhere.py", str(project), "--allow", "write", "--deny", "bash"
        ) as watcher:
            assert await line(watcher) == f"Watching {project}."
            assert (await line(watcher)).startswith("allow: write {")
            assert (await waiting.result(SECONDS)).completed
            sneaky = await workspace.ask("+sneaky", timeout=SECONDS)
            assert (await line(watcher)).startswith("deny: bash {")
        await client.retire()
    assert sneaky.text == "Hm."
    assert files(project) == ["a.txt"]


async def test_a_fan_out_over_sessions_tells_what_each_answered(server: ServerProcess, project: Path) -> None:
    """Answers would be mixed up between the things they are about."""
    code, output, errors = await run(server, "fan_out.py", "-C", str(project), "Describe {}.", "one", "two", "three")
    assert (code, errors) == (0, "")
    assert "one (completed, 0.0000):\nIt is the first.\n" in output
    assert "two (completed, 0.0000):\nIt is the second.\n" in output
    assert output.endswith("3 runs, 0.0000 in all\n")


async def test_a_fan_out_over_sub_agents_shows_them(server: ServerProcess, project: Path) -> None:
    """B72: what an agent's agents do and cost would stay unseen."""
    arguments = ("-C", str(project), "--by-agents", "Describe {}.", "one", "two")
    code, output, errors = await run(server, "fan_out.py", *arguments)
    assert code == 0, errors
    assert output == "Both are described.\n\n2 sub-agents, 0.0000 in all\n"
    assert errors.count(" works, ") >= 2


async def test_an_example_without_a_server_says_what_to_do(tmp_path: Path) -> None:
    """The first thing a newcomer sees would be a traceback."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / "fan_out.py"),
        "Describe {}.",
        "one",
        stderr=asyncio.subprocess.PIPE,
        env={**environment, "XDG_DATA_HOME": str(tmp_path)},
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode().startswith("No server is running for ") and "windlass serve" in errors.decode()
