"""`job_kill`: end a command in the background, and everything it started."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.job import Job
from windlass.tools.jobs import RunJobs
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolOutput


class JobKillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, description="The id that `bash` gave")]


class JobKill:
    name = "job_kill"
    description = "End a command in the background, and everything it started. Its output can still be looked at."
    schema = schema_of(JobKillArguments)
    read_only = False

    def __init__(self, jobs: RunJobs) -> None:
        self._jobs = jobs

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "JobKillPlan":
        job = self._jobs.get(read_arguments(arguments, JobKillArguments).id)
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="end",
            description="End a command that this session left in the background.",
            path="",
            resource=job.id,
            params={"id": job.id, "command": job.line},
            confined=True,
        )
        return JobKillPlan(ask, job)


@dataclass(frozen=True, slots=True)
class JobKillPlan:
    ask: PermissionAsk
    job: Job

    async def run(self) -> ToolOutput:
        if self.job.exit is not None:
            return ToolOutput(f"{self.job.id} had ended already: {self.job.state()}.")
        await self.job.end()
        return ToolOutput(f"{self.job.id} was ended: {self.job.state()}.")
