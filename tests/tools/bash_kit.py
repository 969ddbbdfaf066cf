"""A `bash` tool with real processes behind it."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from windlass.guardian.handle import Guardian
from windlass.tools.bash import Bash, BashPlan
from windlass.tools.confinement import confinement
from windlass.tools.environment import child_environment
from windlass.tools.files import WorkspaceRoot
from windlass.tools.job_kill import JobKill
from windlass.tools.job_output import JobOutput
from windlass.tools.jobs import Jobs, RunJobs
from windlass.wire.tools import ToolOutput


class Shell(NamedTuple):
    """The three tools of one run."""

    store: Jobs
    jobs: RunJobs
    bash: Bash
    job_output: JobOutput
    job_kill: JobKill


@asynccontextmanager
async def some_jobs() -> AsyncIterator[Jobs]:
    guardian = await Guardian.start()
    jobs = Jobs(guardian)
    try:
        yield jobs
    finally:
        await jobs.aclose()
        await guardian.aclose()


def a_run(
    store: Jobs,
    root: WorkspaceRoot,
    *,
    session: str = "ses",
    run: str = "run",
    sandbox: str = "auto",
    paths: Sequence[str] = (),
    ports: Sequence[int] = (),
    directory: str = "",
    environ: Mapping[str, str] = os.environ,
) -> Shell:
    jobs = store.view(session, run)
    confined = confinement(sandbox, paths, ports, root.path)
    bash = Bash(root, jobs, child_environment(environ), confined, directory)
    return Shell(store, jobs, bash, JobOutput(jobs), JobKill(jobs))


@asynccontextmanager
async def a_shell(root: WorkspaceRoot, **options: Any) -> AsyncIterator[Shell]:
    async with some_jobs() as store:
        yield a_run(store, root, **options)


def plan(bash: Bash, command: str, **more: Any) -> BashPlan:
    return bash.plan({"command": command, **more}, "call")


async def run(bash: Bash, command: str, **more: Any) -> ToolOutput:
    return await plan(bash, command, **more).run()
