"""`bash`: run a command line in the workspace's directory.

It runs with the rights of the user who runs the server. It is *unconfined*, and the permission request says so.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.output import HeadAndTail, PipeReader
from windlass.tools.text import shorten
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import FileRoot, Process, ProcessExit, Spawner, ToolError, ToolOutput

_END_SECONDS = limits.KILL_GRACE_SECONDS + 0.5  # the grace, and a moment for the force that follows it


class BashArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, description="The command line, as for `bash -c`")]
    timeout_seconds: Annotated[
        float, Meta(gt=0, le=limits.BASH_MAX_SECONDS, description="After this long it is ended")
    ] = limits.BASH_SECONDS
    description: Annotated[str, Meta(max_length=500, description="What it does, in a few words, for people")] = ""


class Bash:
    name = "bash"
    description = (
        "Run a command line with bash in the workspace's directory and return what it prints (standard output and "
        "error together) and its exit code. Every call starts afresh: `cd` and variables do not last. There is no "
        "input and no terminal, so use options that keep programs from asking. When the command ends, everything it "
        f"started in the background is ended too. Time limit: {limits.BASH_SECONDS:g} s unless `timeout_seconds` "
        f"says otherwise, at most {limits.BASH_MAX_SECONDS:g}. Of long output you see the beginning and the end."
    )
    schema = schema_of(BashArguments)
    read_only = False

    def __init__(self, root: FileRoot, spawner: Spawner, environment: dict[str, str]) -> None:
        self._root = root
        self._spawner = spawner
        self._environment = dict(environment)
        self._shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "BashPlan":
        wanted = read_arguments(arguments, BashArguments)
        if "\0" in wanted.command:
            raise ToolError("`command` contains a NUL character.")
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="execute",
            description="Run a command, unconfined: it can reach everything the user of this server can.",
            path=self._root.path,
            resource=wanted.command,
            params={
                "command": wanted.command,
                "working_directory": self._root.path,
                "timeout_seconds": wanted.timeout_seconds,
                "description": wanted.description,
            },
            confined=False,
        )
        argv = (self._shell, "-c", wanted.command)
        return BashPlan(ask, self._spawner, argv, dict(self._environment), wanted.timeout_seconds)


@dataclass(frozen=True, slots=True)
class BashPlan:
    """Everything is fixed here: the command line, the directory (`ask.path`) and the environment (A27)."""

    ask: PermissionAsk
    spawner: Spawner
    argv: tuple[str, ...]
    environment: dict[str, str]
    timeout_seconds: float

    async def run(self) -> ToolOutput:
        try:
            process = await self.spawner.spawn(self.argv, cwd=self.ask.path, env=self.environment)
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror or error}.") from None
        kept = HeadAndTail(limits.BASH_OUTPUT_BYTES)
        reader = PipeReader(process.output, kept)
        try:
            ending = await self._follow(process)
        finally:
            reader.close()
        return self._output(kept, ending)

    async def _follow(self, process: Process) -> "_Ending":
        try:
            try:
                async with asyncio.timeout(self.timeout_seconds):
                    return _Ending(await process.wait(), timed_out=False)
            except TimeoutError:
                return _Ending(await _end(process), timed_out=True)
        except asyncio.CancelledError:
            # If we are cancelled once more while waiting here, the tree still dies: the guardian has been told.
            await _end(process)
            raise

    def _output(self, kept: HeadAndTail, ending: "_Ending") -> ToolOutput:
        text = shorten(kept.text().rstrip("\n"), limits.TOOL_OUTPUT_CHARACTERS) or "(no output)"
        metadata = {
            "exit_code": ending.exit.exit_code,
            "reason": ending.exit.reason,
            "timed_out": ending.timed_out,
            "output_bytes": kept.total,
        }
        return ToolOutput(
            f"{text}\n{self._verdict(ending)}",
            is_error=ending.timed_out or ending.exit.reason != "exited",
            metadata=msgspec.json.encode(metadata).decode(),
        )

    def _verdict(self, ending: "_Ending") -> str:
        if ending.timed_out:
            return f"[ended after the time limit of {self.timeout_seconds:g} s; exit code {ending.exit.exit_code}]"
        if ending.exit.reason == "lost":
            return f"[the command was lost, and what was left of it ended; exit code {ending.exit.exit_code}]"
        return f"[exit code {ending.exit.exit_code}]"


@dataclass(frozen=True, slots=True)
class _Ending:
    exit: ProcessExit
    timed_out: bool


async def _end(process: Process) -> ProcessExit:
    """Kill the tree and wait for its end; a bound, because what cannot be killed must not hold up the run."""
    process.kill()
    try:
        async with asyncio.timeout(_END_SECONDS):
            return await process.wait()
    except TimeoutError:
        return ProcessExit(exit_code=-9, reason="killed")
