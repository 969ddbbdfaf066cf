"""One command: its process, what of its output is kept, and how it ended."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from windlass import limits
from windlass.tools.output import HeadAndTail, PipeReader
from windlass.wire.tools import Fence, Process, ProcessExit

_END_SECONDS = limits.KILL_GRACE_SECONDS + 0.5  # the grace, and a moment for the force that follows it


@dataclass(frozen=True, slots=True)
class Command:
    """Exactly what is started: the command line as people saw it, the arguments, the directory, the environment."""

    line: str
    argv: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    fence: Fence | None = None


class Job:
    """A command that was started. Its output is taken as it comes, whether anyone looks at it or not."""

    def __init__(
        self,
        id: str,
        session_id: str,
        run_id: str,
        line: str,
        process: Process,
        watch: Callable[[bytes], None] | None = None,
        kept_bytes: int = 0,
    ) -> None:
        self.id = id
        self.session_id = session_id
        self.run_id = run_id
        self.line = line
        self.output = HeadAndTail(kept_bytes or limits.BASH_OUTPUT_BYTES)
        self.read_up_to = 0  # what the model has seen of it
        self.is_background = False
        self.exit: ProcessExit | None = None
        self._process = process
        self._watch = watch
        self._news = asyncio.Event()
        self._ended = asyncio.Event()
        self._age: asyncio.TimerHandle | None = None
        self._reader = PipeReader(process.output, self._take)
        self._following = asyncio.create_task(self._follow(), name=f"follow {id}")

    def _take(self, piece: bytes) -> None:
        self.output.add(piece)
        self._news.set()
        if self._watch is not None:
            self._watch(piece)

    async def _follow(self) -> None:
        self._finish(await self._process.wait())

    def _finish(self, exit: ProcessExit) -> None:
        """The end, once: everything it said has been taken, and nothing of it holds a descriptor or a timer."""
        if self.exit is not None:
            return
        self._reader.close()
        self.exit = exit
        if self._age is not None:
            self._age.cancel()
        self._news.set()
        self._ended.set()

    def leave_in_background(self) -> None:
        """Let it go on without anyone waiting for it, but not for ever."""
        self.is_background = True
        self._watch = None
        if self.exit is None:
            self._age = asyncio.get_running_loop().call_later(limits.JOB_SECONDS, self.kill)

    async def ended(self) -> ProcessExit:
        """Wait for the end. Cancelling the waiter does not end the command."""
        await self._ended.wait()
        assert self.exit is not None
        return self.exit

    async def wait_for_news(self, seconds: float) -> None:
        """Return when there is something that was not read yet, when it has ended, or when the time is over."""
        self._news.clear()
        if self.exit is None and self.output.total <= self.read_up_to:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    def kill(self) -> None:
        """Ask for its end, of the whole tree: politely at first, with force after a grace. Harmless when it is over."""
        if self.exit is None:
            self._process.kill()

    async def end(self) -> ProcessExit:
        """Kill it and wait for its end; a bound, because what cannot be killed must not hold up the run."""
        self.kill()
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await self.ended()
        except TimeoutError:
            self._following.cancel()
            self._finish(ProcessExit(exit_code=-9, reason="killed"))
            return await self.ended()

    def state(self) -> str:
        """How it is, in a few words."""
        if self.exit is None:
            return "running"
        if self.exit.reason == "exited":
            return f"exit code {self.exit.exit_code}"
        return f"{self.exit.reason}, exit code {self.exit.exit_code}"
