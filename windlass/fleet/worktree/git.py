"""git, run with a bound on its time and its words, and with nothing of the repository executed (`git_settings.py`)."""

import asyncio
import os
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windlass import limits
from windlass.fleet.worktree.git_settings import ASKED, configured, full_environment, harmless_filters, identity
from windlass.wire.tools import Process, Spawner

_PIECE_BYTES = 64 * limits.KIB  # one read: the size of a pipe's buffer
_END_SECONDS = limits.KILL_GRACE_SECONDS + 0.5  # the grace, and a moment for the force that follows it
# The last: `worktree list` met a worktree that another git is just making.
_COLLISIONS = (
    *("cannot lock ref", "could not lock", ".lock': File exists", "unable to create directory for"),
    "/commondir: ",
)


class WorktreeError(OSError):
    """A worktree cannot be had or settled. The message says what to do; nothing an agent made was thrown away."""


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """`text` is standard output and error together; `whole` is False when there was more than GIT_OUTPUT_BYTES."""

    exit_code: int
    text: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Git:
    """git in one directory. Needs git 2.31 or newer; older ones cannot be told all of this in their environment.

    Every command ends in GIT_SECONDS or is killed; cancelling kills it too. A command that meets the lock of another
    is tried again for GIT_LOCK_SECONDS. Raises WorktreeError for all that goes wrong.
    """

    spawner: Spawner
    environment: Mapping[str, str]
    directory: str = "/"
    git_directory: str = ""  # when given, git does not look for the repository itself
    settings: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)

    def at(self, directory: str, git_directory: str = "") -> "Git":
        return replace(self, directory=directory, git_directory=git_directory)

    async def do(self, *arguments: str) -> str:
        """Run it and return what it said; raises WorktreeError with git's own words when it failed."""
        answer = await self.attempt(*arguments)
        if answer.exit_code != 0:
            raise self.failure(arguments[0], answer)
        return answer.text

    def failure(self, command: str, answer: GitAnswer) -> WorktreeError:
        said = answer.text.strip()[: limits.GIT_SAID_CHARACTERS] or f"exit code {answer.exit_code}"
        return WorktreeError(f"`git {command}` failed in {self.directory}: {said}")

    async def read(self, *arguments: str) -> str:
        """The same for a command whose answer is parsed and that may be run twice: no warning gets in between."""
        answer = await self.look(*arguments)
        if answer.exit_code != 0:
            return await self.do(*arguments)  # once more, for the reason
        if not answer.whole:
            raise WorktreeError(f"`git {arguments[0]}` said more than {limits.GIT_OUTPUT_BYTES} bytes")
        return answer.text.removesuffix("\n")

    async def look(self, *arguments: str) -> GitAnswer:
        """Run it without its warnings, for commands whose failure is an answer."""
        return await self._run(arguments, ("/bin/sh", "-c", 'exec "$@" 2>/dev/null', "sh"))

    async def attempt(self, *arguments: str) -> GitAnswer:
        """Run it, again and again while another holds the lock it needs, and return how it ended."""
        deadline = asyncio.get_running_loop().time() + limits.GIT_LOCK_SECONDS
        while True:
            answer = await self._run(arguments)
            collided = answer.exit_code != 0 and any(words in answer.text for words in _COLLISIONS)
            if not collided or asyncio.get_running_loop().time() > deadline:
                return answer
            # At random, so that those who collided do not meet again at the same moment.
            await asyncio.sleep(limits.GIT_LOCK_PAUSE_SECONDS * random.uniform(0.5, 1.5))

    async def without_its_programs(self) -> "Git":
        """The same, for commands that touch files: no filter of the repository runs, and commits have an author."""
        # In the directory itself, because a configuration can be included for one branch or one worktree only.
        found = await self.look("config", "--show-scope", "-z", "--get-regexp", ASKED)
        if found.exit_code not in (0, 1) or not found.whole:
            raise WorktreeError(f"git cannot read its configuration in {self.directory}; see `git config --list`")
        entries = configured(found.text)
        return replace(self, settings=harmless_filters(entries), identity=identity(entries))

    async def _run(self, arguments: tuple[str, ...], through: tuple[str, ...] = ()) -> GitAnswer:
        environment = full_environment(self.environment, self.settings, self.identity)
        program = shutil.which("git", path=environment["PATH"])
        if program is None:
            raise WorktreeError("git is not installed. Install it, or set `worktree = false` in the agent's role.")
        where = [f"--git-dir={self.git_directory}"] if self.git_directory else []
        argv = [*through, program, "--no-pager", *where, *arguments]
        try:
            process = await self.spawner.spawn(argv, cwd=self.directory, env=environment)
        except OSError as error:
            raise WorktreeError(f"git cannot be started in {self.directory}: {error.strerror or error}") from None
        output = _Output(process.output)
        try:
            exit_code = await _follow(process, arguments[0])
        finally:
            output.close()
        return GitAnswer(exit_code, output.kept.decode("utf-8", "surrogateescape"), output.whole)


async def _follow(process: Process, command: str) -> int:
    try:
        async with asyncio.timeout(limits.GIT_SECONDS):
            return (await process.wait()).exit_code
    except TimeoutError:
        await _end(process)
        raise WorktreeError(f"`git {command}` did not end within {limits.GIT_SECONDS:g} s") from None
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: Process) -> None:
    """Politely first: git takes its locks away when it is asked to leave."""
    process.kill()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        pass  # the guardian goes on trying; what cannot be killed must not hold us up


class _Output:
    """Takes what arrives on a pipe and keeps the first GIT_OUTPUT_BYTES. Owns and closes the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.kept = bytearray()
        self.whole = True
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._take)

    def close(self) -> None:
        """Take what is still in the pipe, and close it."""
        self._loop.remove_reader(self._descriptor)
        # Bounded, because a writer that could not be killed could go on for ever.
        for _ in range(limits.MIB // _PIECE_BYTES):
            if not self._read():
                break
        os.close(self._descriptor)

    def _take(self) -> None:
        if self._read() == b"":
            self._loop.remove_reader(self._descriptor)  # the end, of which the loop would tell us for ever

    def _read(self) -> bytes | None:
        """Take one piece; b"" at the end, None when there is nothing just now."""
        try:
            piece = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return None
        self.kept += piece[: limits.GIT_OUTPUT_BYTES - len(self.kept)]
        self.whole = self.whole and len(self.kept) < limits.GIT_OUTPUT_BYTES
        return piece
