"""A program that was forked from a stem, for a test that waits for it on its event loop.

As much of `asyncio.subprocess.Process` as tests need: pipes, signals, and an end that can be awaited.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from windlass.testing.stem import Stem

_CODE_BYTES = 16


class ForkedProgram:
    """A running program. `stdin`, `stdout` and `stderr` are there where a pipe was asked for."""

    def __init__(self, ends_at: int) -> None:
        """`ends_at`: the end of a pipe from which its exit code will come."""
        self.pid = 0
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._loop = asyncio.get_running_loop()
        self._ends_at = ends_at
        self._over = asyncio.Event()
        self._loop.add_reader(ends_at, self._end)

    def _end(self) -> None:
        self._loop.remove_reader(self._ends_at)
        said = os.read(self._ends_at, _CODE_BYTES)
        os.close(self._ends_at)
        self.returncode = int(said or -signal.SIGKILL)  # a stem that is gone says nothing
        if self.stdin is not None:
            self.stdin.close()
        self._over.set()

    async def wait(self) -> int:
        await self._over.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self, input: bytes = b"") -> tuple[bytes, bytes]:
        """Write the input, and return all that it says on its pipes once it has ended."""
        if self.stdin is not None:
            self.stdin.write(input)
            with contextlib.suppress(ConnectionError):  # it may leave without reading
                await self.stdin.drain()
            self.stdin.close()
        said, complained, _ = await asyncio.gather(_all_of(self.stdout), _all_of(self.stderr), self.wait())
        return said, complained

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # over, and the word of it is under way
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def fork(
    stem: Stem,
    argv: list[str],
    environment: dict[str, str],
    directory: Path | None = None,
    *,
    stdin: int = DEVNULL,
    stdout: int = PIPE,
    stderr: int = PIPE,
    is_script: bool = False,
) -> ForkedProgram:
    """Start a program of the stem, as `create_subprocess_exec` starts one from nothing.

    A stream is `PIPE`, `DEVNULL` or a descriptor, of which the program gets a copy. `is_script`: as `Stem.fork_on`.
    """
    ends_at, told_at = os.pipe()
    program = ForkedProgram(ends_at)
    with contextlib.ExitStack() as theirs:
        theirs.callback(os.close, told_at)
        descriptors = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            if stream == PIPE:
                reading, writing = os.pipe()
                stream, ours = (reading, writing) if number == 0 else (writing, reading)
                theirs.callback(os.close, stream)
                await _connect(program, number, ours)
            elif stream == DEVNULL:
                stream = os.open(os.devnull, os.O_RDWR)
                theirs.callback(os.close, stream)
            descriptors.append(stream)
        where = str(directory) if directory is not None else ""
        program.pid = stem.fork_on([*descriptors, told_at], argv, environment, where, is_script=is_script)
    return program


async def _connect(program: ForkedProgram, number: int, descriptor: int) -> None:
    """Make our end of a pipe a stream of the program's."""
    loop = asyncio.get_running_loop()
    if number == 0:
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb")
        )
        program.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        return
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb"))
    if number == 1:
        program.stdout = reader
    else:
        program.stderr = reader


async def _all_of(source: asyncio.StreamReader | None) -> bytes:
    return b"" if source is None else await source.read()
