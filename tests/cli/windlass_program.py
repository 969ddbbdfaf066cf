"""A running `windlass` that a test can read from, type to and wait for."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from windlass.testing import canary
from windlass.testing.forked_program import ForkedProgram, fork
from windlass.testing.server_process import ServerProcess
from windlass.testing.watched_program import SIGN

_SECONDS = 20.0  # the longest that a program may take for anything, on a machine that is full


class Program:
    """A running `windlass`. Its output is collected as it comes."""

    def __init__(self, process: asyncio.subprocess.Process | ForkedProgram) -> None:
        self.process = process
        self.out = ""
        self.err = ""
        self._news = asyncio.Event()
        sources = {"out": process.stdout, "err": process.stderr}
        self._readers = [
            asyncio.create_task(self._collect(source, name)) for name, source in sources.items() if source is not None
        ]

    async def _collect(self, source: asyncio.StreamReader, name: str) -> None:
        try:
            while chunk := await source.read(65536):
                setattr(self, name, getattr(self, name) + chunk.decode())
                self._news.set()
        finally:
            self._news.set()  # that there will be no more

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def says(self, words: str, times: int = 1) -> None:
        """Return when the words have been printed, on either stream."""
        try:
            async with asyncio.timeout(_SECONDS):
                while (self.out + self.err).count(words) < times:
                    is_over = all(reader.done() for reader in self._readers)
                    assert not is_over, f"it ended without saying {words!r}\n{self.out}\n{self.err}"
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"it did not say {words!r}\n{self.out}\n{self.err}") from None

    async def ended(self) -> int:
        async with asyncio.timeout(_SECONDS):
            await asyncio.gather(*self._readers)
            canary.check_text(self.out + self.err, "what the program printed")
            assert SIGN not in self.err, self.err
            return await self.process.wait()

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()


async def start_windlass(
    home: Path,
    *arguments: str,
    stdin: int,
    stdout: int = PIPE,
    environment: dict[str, str],
    from_nothing: bool = False,
) -> Program:
    """Start `windlass ARGUMENTS` in its home. `from_nothing`: as people do, with all that loading takes.

    A few tests of each command need that: what is forked would not notice an import that is missing.
    """
    if from_nothing:
        argv = (sys.executable, "-m", "windlass", *arguments)
        started = await asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=stdout, stderr=PIPE, cwd=home, env=environment
        )
        return Program(started)
    assert ServerProcess.stem is not None
    argv = ["windlass", *arguments]
    return Program(await fork(ServerProcess.stem, argv, environment, home, stdin=stdin, stdout=stdout))
