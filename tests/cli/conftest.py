"""The real program in a process of its own, against the fake server of the client's tests."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import windlass
from windlass.testing import canary

# The fake server lives with the tests of the client; test folders are no packages.
sys.path.append(str(Path(__file__).parent.parent / "client"))

from fake_windlass import TOKEN, FakeWindlass
from windlass_program import Program


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

    async def start_program(*arguments: str, stdin: int | None = None, stdout: int = PIPE) -> Program:
        if stdin is None:
            stdin = DEVNULL if arguments[0] == "run" else PIPE  # what is piped into a run is a part of its prompt
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "windlass", *arguments),
            stdin=stdin,
            stdout=stdout,
            stderr=PIPE,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "PYTHONPATH": str(Path(windlass.__file__).parent.parent),
                "WINDLASS_URL": server.url,
                "WINDLASS_TOKEN_FILE": str(token),
                **canary.ENVIRONMENT,
            },
        )
        program = Program(process)
        programs.append(program)
        return program

    yield start_program
    for program in programs:
        await program.stop()
