"""`bash`: run a command line, and wait for it or leave it in the background.

It runs with the rights of the user who runs the server. Where the kernel can, it is kept from what is Windlass's own
(`confinement.py`); the permission request says whether it is.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.bash_result import Ending, result
from windlass.tools.confinement import Confinement
from windlass.tools.job import Command, Job
from windlass.tools.jobs import RunJobs, new_job_id
from windlass.tools.screen import Screen
from windlass.tools.whereabouts import Place, Whereabouts, identity, take_report
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import FileRoot, ToolError, ToolOutput

# The command itself is an argument of its own, so what is run is what was approved, byte for byte. The trap says where
# the shell stood at its end, whatever ended it; a command that sets this trap itself, or calls exec, does not tell.
_SHELL = 'trap "$2" EXIT; eval "shift 2; $1"'
_MOVES = re.compile(r"\b(cd|pushd|popd)\b")


class BashArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, description="The command line, as for `bash -c`")]
    timeout_seconds: Annotated[
        float, Meta(gt=0, le=limits.BASH_MAX_SECONDS, description="After this long it is ended")
    ] = limits.BASH_SECONDS
    background: Annotated[bool, Meta(description="Leave it running and answer at once, with the id of a job")] = False
    description: Annotated[str, Meta(max_length=500, description="What it does, in a few words, for people")] = ""


class Bash:
    name = "bash"
    description = (
        "Run a command line with bash and return what it prints (standard output and error together) and its exit "
        "code. It starts in the workspace's directory, or where the last command left off: `cd` lasts, variables and "
        "functions do not. There is no input and no terminal, so use options that keep programs from asking. When the "
        "command ends, everything it started is ended too; for a server or a long build use `background`, which "
        "returns a job id at once, then `job_output` and `job_kill`. Time limit: "
        f"{limits.BASH_SECONDS:g} s unless `timeout_seconds` says otherwise, at most {limits.BASH_MAX_SECONDS:g}; none "
        "in the background. Of long output you see the beginning and the end; `job_output` shows the rest."
    )
    schema = schema_of(BashArguments)
    read_only = False

    def __init__(
        self,
        root: FileRoot,
        jobs: RunJobs,
        environment: dict[str, str],
        confinement: Confinement,
        directory: str = "",
    ) -> None:
        """`directory`: where the shell of the session stood last."""
        self._root = root.path
        self._jobs = jobs
        self._confinement = confinement
        self._whereabouts = Whereabouts(root.path, directory)
        self._environment = _with_temporary(environment, confinement, jobs.scratch)
        self._shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "BashPlan":
        wanted = read_arguments(arguments, BashArguments)
        if "\0" in wanted.command:
            raise ToolError("`command` contains a NUL character.")
        if self._confinement.refusal:
            raise ToolError(self._confinement.refusal)
        try:
            place = self._whereabouts.now()
        except OSError as error:
            raise ToolError(f"The workspace {self._root} cannot be entered: {error.strerror}.") from None
        id = new_job_id()
        report = os.path.join(self._jobs.scratch, f"{id}.cwd")
        # In the background nobody would take the report, and nobody waits to know where the shell stood.
        trap = "" if wanted.background else f"command pwd -P >{shlex.quote(report)} 2>/dev/null"
        argv = (self._shell, "-c", _SHELL, os.path.basename(self._shell), wanted.command, trap)
        command = Command(wanted.command, argv, place.path, dict(self._environment), self._confinement.fence)
        ask = self._ask(wanted, place, tool_call_id)
        return BashPlan(
            ask, id, self._jobs, command, place, report, wanted.timeout_seconds, wanted.background,
            self._whereabouts, self._confinement,
        )  # fmt: skip

    def _ask(self, wanted: BashArguments, place: Place, tool_call_id: str) -> PermissionAsk:
        """Directory and background are in the action too: that is part of what a grant for the session covers."""
        how = " in the background" if wanted.background else ""
        return PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action=f"execute{how}" if place.path == self._root else f"execute{how} in {place.path}",
            description=f"Run a command{how}, {self._confinement.says}.",
            path=place.path,
            resource=wanted.command,
            params={
                "command": wanted.command,
                "working_directory": place.path,
                "timeout_seconds": None if wanted.background else wanted.timeout_seconds,
                "background": wanted.background,
                "description": wanted.description,
            },
            confined=self._confinement.is_whole,
        )


@dataclass(frozen=True, slots=True)
class BashPlan:
    """Everything is fixed here: the command line, the directory, the environment and what it is kept from (A27)."""

    streams: ClassVar[Literal[True]] = True

    ask: PermissionAsk
    id: str
    jobs: RunJobs
    command: Command
    place: Place
    report: str
    timeout_seconds: float
    background: bool
    whereabouts: Whereabouts
    confinement: Confinement

    async def run(self, show: Callable[[str], None] | None = None) -> ToolOutput:
        """Do it. A cancel ends the whole tree of the command before it goes on."""
        await asyncio.to_thread(self._check_place)  # a directory on a network can take its time
        if self.background:
            self.jobs.check_room()
        screen = Screen(show) if show is not None else None
        try:
            job = await self._start(screen)
            ending = await (self._settle(job) if self.background else self._follow(job))
        except asyncio.CancelledError:
            # Nobody wants to know, but every cancelled command would leave a file until the server ends.
            await asyncio.to_thread(take_report, self.report)
            raise
        finally:
            if screen is not None:
                screen.close()
        note = self.place.note if self.background else await self._move()
        return result(job, ending, note, self.whereabouts.directory, self.confinement.hint)

    async def _move(self) -> str:
        """Stand where the command left the shell. Returns what the model is to be told of it."""
        directory = await asyncio.to_thread(take_report, self.report)
        if directory:
            self.whereabouts.move(directory)
        elif _MOVES.search(self.command.line):
            # It set this trap itself, called exec, or went where the name is no text: the model believes it is there.
            stays = f"Where the shell stood in the end is not known; the next command starts in {self.place.path}."
            return f"{self.place.note} {stays}".lstrip()
        return self.place.note

    def _check_place(self) -> None:
        """Not another directory under the same name: what was approved was to run in that one (A27)."""
        try:
            is_same = identity(self.place.path) == self.place.identity
        except OSError:
            is_same = False
        if not is_same:
            raise ToolError(
                f"{self.place.path} is not the directory any more that it was when this command was approved, so it "
                "was not run. Look, and call it again."
            )

    async def _start(self, screen: Screen | None) -> Job:
        try:
            return await self.jobs.start(self.id, self.command, screen.add if screen is not None else None)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from None

    async def _follow(self, job: Job) -> Ending:
        try:
            try:
                async with asyncio.timeout(self.timeout_seconds):
                    return Ending(await job.ended(), self.timeout_seconds, timed_out=False)
            except TimeoutError:
                return Ending(await job.end(), self.timeout_seconds, timed_out=True)
        except asyncio.CancelledError:
            # If we are cancelled once more while waiting here, the tree still dies: the guardian has been told.
            await job.end()
            raise

    async def _settle(self, job: Job) -> Ending | None:
        """Give it a moment: a server that cannot start says so at once. None: it goes on."""
        try:
            async with asyncio.timeout(limits.JOB_SETTLE_SECONDS):
                return Ending(await job.ended(), 0.0, timed_out=False)
        except TimeoutError:
            job.leave_in_background()
            return None
        except asyncio.CancelledError:
            await job.end()
            raise


def _with_temporary(environment: dict[str, str], confinement: Confinement, scratch: str) -> dict[str, str]:
    """Where a confined command can make nothing in the usual place for temporary files, it gets one of its own."""
    usual = os.path.realpath(environment.get("TMPDIR") or "/tmp")
    return {**environment, "TMPDIR": f"{scratch}/tmp"} if usual in confinement.closed else dict(environment)
