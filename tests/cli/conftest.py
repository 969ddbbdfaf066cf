"""The real program in a process of its own, against the fake server of the client's tests."""

import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

# The fake server lives with the tests of the client; test folders are no packages.
sys.path.append(str(Path(__file__).parent.parent / "client"))

from command_line import environment
from fake_windlass import TOKEN, FakeWindlass
from windlass_program import Program, start_windlass


@pytest.fixture
async def server() -> AsyncIterator[FakeWindlass]:
    async with FakeWindlass().serve() as running:
        yield running


@pytest.fixture
async def start(server: FakeWindlass, tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    """Starts `windlass ARGUMENTS`, with the fake server as the one it finds."""
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    programs: list[Program] = []

    async def start_program(
        *arguments: str, stdin: int | None = None, stdout: int = PIPE, from_nothing: bool = False
    ) -> Program:
        if stdin is None:
            stdin = DEVNULL if arguments[0] == "run" else PIPE  # what is piped into a run is a part of its prompt
        variables = environment(tmp_path, WINDLASS_URL=server.url, WINDLASS_TOKEN_FILE=str(token))
        del variables["WINDLASS_LOCAL_SERVERS"]  # these look for other servers, as on anybody's machine
        program = await start_windlass(
            tmp_path, *arguments, stdin=stdin, stdout=stdout, environment=variables, from_nothing=from_nothing
        )
        programs.append(program)
        return program

    yield start_program
    for program in programs:
        await program.stop()
