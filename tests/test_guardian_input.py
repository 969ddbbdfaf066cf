"""The guardian hands a command its standard input: how a worker is told its secrets, and of its parent's end."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from windlass.guardian.handle import Guardian
from windlass.guardian.process import GuardedProcess
from windlass.wire.tools import ProcessExit

BASH = "/bin/bash"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = await Guardian.start()
    yield guardian
    await guardian.aclose()


async def spawn_with_input(guardian: Guardian, script: str) -> tuple[GuardedProcess, int]:
    """A command and the writing end of its standard input."""
    reading, writing = os.pipe()
    try:
        process = await guardian.spawn([BASH, "-c", script], cwd="/", env=ENVIRONMENT, stdin=reading)
    finally:
        os.close(reading)
    return process, writing


async def finish(process: GuardedProcess) -> tuple[ProcessExit, str]:
    exit = await asyncio.wait_for(process.wait(), 20)
    with os.fdopen(process.output, "rb") as pipe:
        return exit, pipe.read().decode()


async def test_what_is_written_reaches_the_command(guardian: Guardian) -> None:
    """A worker would not learn its secret, which must be neither in its arguments nor in its environment (A39)."""
    process, writing = await spawn_with_input(guardian, "read line; echo got $line")
    os.write(writing, b"a secret\n")
    assert await finish(process) == (ProcessExit(0), "got a secret\n")
    os.close(writing)


async def test_the_command_sees_the_end_of_its_input(guardian: Guardian) -> None:
    """B59: a worker watches its parent by it; if a keeper held an end too, a dead parent would go unnoticed."""
    process, writing = await spawn_with_input(guardian, "cat; echo over")
    os.close(writing)
    assert await finish(process) == (ProcessExit(0), "over\n")


async def test_the_writer_sees_that_the_command_is_gone(guardian: Guardian) -> None:
    """A parent would write into a pipe that nobody will ever read, and wait for ever once it is full."""
    process, writing = await spawn_with_input(guardian, "exit 3")
    assert (await finish(process))[0] == ProcessExit(3)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"is anybody there?\n")
    os.close(writing)


async def test_two_commands_do_not_share_their_input(guardian: Guardian) -> None:
    """One worker's pipe, inherited by the next, would keep the first one's life line open for ever."""
    first, first_writing = await spawn_with_input(guardian, "cat; echo first")
    second, second_writing = await spawn_with_input(guardian, "cat; echo second")
    os.close(first_writing)
    assert await finish(first) == (ProcessExit(0), "first\n")
    os.close(second_writing)
    assert await finish(second) == (ProcessExit(0), "second\n")


async def test_without_one_the_input_is_empty(guardian: Guardian) -> None:
    """A tool's command that reads its input would wait for ever, or read the server's terminal."""
    process = await guardian.spawn([BASH, "-c", "cat; echo over"], cwd="/", env=ENVIRONMENT)
    assert await finish(process) == (ProcessExit(0), "over\n")


async def test_a_command_that_cannot_be_started_leaves_the_input_to_the_caller(guardian: Guardian) -> None:
    """A descriptor closed twice may by then be somebody else's file."""
    reading, writing = os.pipe()
    with pytest.raises(FileNotFoundError):
        await guardian.spawn(["/there/is/no/such"], cwd="/", env={}, stdin=reading)
    os.write(writing, b"x")
    assert os.read(reading, 1) == b"x"
    os.close(reading)
    os.close(writing)


async def test_errors_can_have_a_pipe_of_their_own(guardian: Guardian) -> None:
    """What a program logs would stand in the middle of the messages it writes to its standard output."""
    reading, writing = os.pipe()
    errors, errors_writing = os.pipe()
    process = await guardian.spawn(
        [BASH, "-c", "echo said; echo logged >&2"], cwd="/", env=ENVIRONMENT, stdin=reading, stderr=errors_writing
    )
    os.close(reading)
    os.close(errors_writing)
    assert await finish(process) == (ProcessExit(0), "said\n")
    with os.fdopen(errors, "rb") as pipe:
        assert pipe.read() == b"logged\n"  # to its end: nobody else holds the writing one
    os.close(writing)
