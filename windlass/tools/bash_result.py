"""What a model is told of a command: its output, how it ended, and where to find what was left out."""

from dataclasses import dataclass

import msgspec

from windlass import limits
from windlass.tools.job import Job
from windlass.wire.tools import ProcessExit, ToolOutput

_REFUSED = ("permission denied", "operation not permitted", "no new privileges", "eacces", "eperm")


@dataclass(frozen=True, slots=True)
class Ending:
    exit: ProcessExit
    limit_seconds: float
    timed_out: bool


def result(job: Job, ending: Ending | None, note: str, directory: str, hint: str) -> ToolOutput:
    """`ending` is None for a command that goes on in the background. `directory`: where the next one starts."""
    text = _text(job)
    lines = [text or "(no output)"]
    if note:
        lines.append(f"[{note}]")
    if hint and ending is not None and ending.exit.exit_code and any(word in text.lower() for word in _REFUSED):
        lines.append(f"[{hint}]")
    lines.append(f"[{_verdict(job, ending)}]")
    metadata = {"job": job.id, "output_bytes": job.output.total, "cwd": directory}
    if ending is not None:
        metadata |= {
            "exit_code": ending.exit.exit_code,
            "reason": ending.exit.reason,
            "timed_out": ending.timed_out,
        }
    return ToolOutput(
        "\n".join(lines),
        is_error=ending is not None and (ending.timed_out or ending.exit.reason != "exited"),
        metadata=msgspec.json.encode(metadata).decode(),
    )


def _text(job: Job) -> str:
    """All of a short output; of a long one the beginning and the end, with what is between by its place."""
    size = limits.JOB_PAGE_BYTES
    if job.output.total <= size:
        page = job.output.page(0, size)
        job.read_up_to = page.end
        return page.text.rstrip("\n")
    head = job.output.page(0, size // 2)
    tail = job.output.page(job.output.total - size // 2, size // 2)
    job.read_up_to = job.output.total
    left_out = f'[... bytes {head.end} to {tail.start} left out; job_output with id "{job.id}" and offset {head.end} '
    return f"{head.text}\n{left_out}shows them ...]\n{tail.text}".rstrip("\n")


def _verdict(job: Job, ending: Ending | None) -> str:
    if ending is None:
        return f"running in the background as {job.id}: job_output shows more, job_kill ends it"
    code = f"exit code {ending.exit.exit_code}"
    if ending.timed_out:
        return f"ended after the time limit of {ending.limit_seconds:g} s; {code}"
    if ending.exit.reason == "lost":
        return f"the command was lost, and what was left of it ended; {code}"
    return code
