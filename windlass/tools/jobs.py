"""The commands of a process: those that run, and the newest that have ended, by session.

A command in the background lives with its session: it goes on when its run completes, ends when that is cancelled, when
the session is let go, and with the server at the latest (everything is started by the guardian).
"""

import asyncio
import os
import secrets
from collections.abc import Callable, Iterable
from typing import NamedTuple

from windlass import limits
from windlass.tools.job import Command, Job
from windlass.tools.scratch import Scratch
from windlass.wire.tools import Spawner, ToolError


class RunJobs(NamedTuple):
    """The commands as one run sees them: those of its session."""

    store: "Jobs"
    session_id: str
    run_id: str

    @property
    def scratch(self) -> str:
        return self.store.scratch

    def check_room(self) -> None:
        running = [job.id for job in self.store.of(self.session_id) if job.is_background and job.exit is None]
        if len(running) >= limits.JOBS_RUNNING:
            raise ToolError(
                f"{len(running)} commands of this session are running in the background: {', '.join(running)}. "
                "End one with job_kill first."
            )

    async def start(self, id: str, command: Command, watch: Callable[[bytes], None] | None = None) -> Job:
        return await self.store.start(id, self.session_id, self.run_id, command, watch)

    def get(self, id: str) -> Job:
        """The job of that id; a ToolError that says which there are, if there is none."""
        jobs = {job.id: job for job in self.store.of(self.session_id)}
        if id in jobs:
            return jobs[id]
        known = [f"{job.id} ({job.state()})" for job in list(jobs.values())[-limits.JOBS_RUNNING :]]
        raise ToolError(
            f"There is no job {id!r} in this session; jobs end with the server, and the oldest are forgotten. "
            f"There are: {', '.join(known) or 'none'}."
        )


class Jobs:
    """All commands that were started here. `scratch` is a directory of their own, made with the first of them."""

    def __init__(self, spawner: Spawner, temporary: str = "") -> None:
        self._spawner = spawner
        self._jobs: dict[str, Job] = {}  # in the order they were started
        self._sessions: dict[str, dict[str, Job]] = {}  # the same ones: a server that leaves asks for each session
        self._scratch = Scratch(temporary or os.environ.get("TMPDIR", "") or "/tmp")
        self.scratch = self._scratch.path
        self._ending: set[asyncio.Task[None]] = set()

    def view(self, session_id: str, run_id: str) -> RunJobs:
        return RunJobs(self, session_id, run_id)

    def of(self, session_id: str) -> list[Job]:
        return list(self._sessions.get(session_id, {}).values())

    async def start(
        self, id: str, session_id: str, run_id: str, command: Command, watch: Callable[[bytes], None] | None
    ) -> Job:
        """Start it; raises OSError. Cancelling leaves nothing behind."""
        await asyncio.to_thread(self._scratch.make)
        process = await self._spawner.spawn(
            command.argv, cwd=command.directory, env=command.environment, fence=command.fence
        )
        job = Job(id, session_id, run_id, command.line, process, watch)
        self._jobs[id] = job
        self._sessions.setdefault(session_id, {})[id] = job
        self._forget_oldest()
        return job

    def _forget(self, job: Job) -> None:
        del self._jobs[job.id]
        del self._sessions[job.session_id][job.id]
        if not self._sessions[job.session_id]:
            del self._sessions[job.session_id]

    def _forget_oldest(self) -> None:
        over = [job for job in self._jobs.values() if job.exit is not None]
        kept_bytes = sum(job.output.kept_bytes for job in over)
        for number, job in enumerate(over):
            if len(over) - number <= limits.JOBS_KEPT and kept_bytes <= limits.JOBS_KEPT_BYTES:
                return
            kept_bytes -= job.output.kept_bytes
            self._forget(job)

    async def end_run(self, run_id: str) -> None:
        """End what a run that was cancelled has left running."""
        await _end(job for job in self._jobs.values() if job.run_id == run_id)

    def let_go(self, session_id: str) -> None:
        """Forget what a session has run, and end what of it still runs; nobody waits for that but `aclose`."""
        jobs = self.of(session_id)
        for job in jobs:
            self._forget(job)
        if any(job.exit is None for job in jobs):
            ending = asyncio.create_task(_end(jobs), name=f"end the commands of {session_id}")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """End everything that still runs and remove the scratch directory."""
        await _end(self._jobs.values())
        self._jobs.clear()
        self._sessions.clear()
        if self._ending:
            await asyncio.wait(self._ending)
        await asyncio.to_thread(self._scratch.remove)


def new_job_id() -> str:
    """Not counted: a conversation goes on after a restart, and "job 3" must not be another one then."""
    return f"job_{secrets.token_hex(4)}"


async def _end(jobs: Iterable[Job]) -> None:
    """End these, all at the same time."""
    running = [job for job in jobs if job.exit is None]
    if running:
        await asyncio.gather(*(job.end() for job in running))
