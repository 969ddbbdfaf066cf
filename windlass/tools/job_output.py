"""`job_output`: what a command in the background has said since the last look, or any stretch of a long output."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.job import Job
from windlass.tools.jobs import RunJobs
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolOutput

_NEW = -1  # as an offset: where the last look ended


class JobOutputArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, description="The id that `bash` gave")]
    offset: Annotated[
        int, Meta(ge=-1, description="From this byte of the output on; left out: what you have not seen yet")
    ] = _NEW
    wait_seconds: Annotated[
        float, Meta(ge=0, le=limits.JOB_WAIT_SECONDS, description="Wait this long for something new, or for its end")
    ] = 0.0


class JobOutput:
    name = "job_output"
    description = (
        "Show the output of a command: of one in the background what is new since your last look (with `wait_seconds` "
        "it waits for something new), of one with long output any stretch of it by `offset`."
    )
    schema = schema_of(JobOutputArguments)
    read_only = True

    def __init__(self, jobs: RunJobs) -> None:
        self._jobs = jobs

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "JobOutputPlan":
        wanted = read_arguments(arguments, JobOutputArguments)
        job = self._jobs.get(wanted.id)
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="read",
            description="Look at the output of a command that was run before.",
            path="",
            resource=job.id,
            params={"id": job.id, "command": job.line},
            confined=True,
        )
        return JobOutputPlan(ask, job, wanted.offset, wanted.wait_seconds)


@dataclass(frozen=True, slots=True)
class JobOutputPlan:
    ask: PermissionAsk
    job: Job
    offset: int
    wait_seconds: float

    async def run(self) -> ToolOutput:
        if self.wait_seconds and self.offset == _NEW:
            await self.job.wait_for_news(self.wait_seconds)
        start = self.job.read_up_to if self.offset == _NEW else self.offset
        page = self.job.output.page(start, limits.JOB_PAGE_BYTES)
        if start <= self.job.read_up_to:  # who looks further on has not seen what is between
            self.job.read_up_to = max(self.job.read_up_to, page.end)
        total = self.job.output.total
        lines = [page.text.rstrip("\n") or ("(nothing new)" if self.offset == _NEW else "(nothing there)")]
        if page.start > start:
            lines.insert(0, f"[bytes {start} to {page.start} were not kept: there were too many]")
        more = f"; the next byte is {page.end}" if page.end < total else ""
        lines.append(f"[{self.job.id}: {self.job.state()}; bytes {page.start} to {page.end} of {total}{more}]")
        metadata = {
            "job": self.job.id,
            "running": self.job.exit is None,
            "next_offset": page.end,
            "output_bytes": total,
        }
        return ToolOutput(
            "\n".join(lines), metadata=msgspec.json.encode(metadata).decode(), goes_on=self.job.exit is None
        )
