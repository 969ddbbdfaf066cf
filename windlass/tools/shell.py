"""A command that a person typed, as a run: the executor of runs whose purpose is "shell".

It is the person's own: nobody is asked, and rules that deny commands to agents do not hold. It runs with the rights of
the user who runs the server, in the workspace's directory, and ends with its run.
"""

import asyncio
import os
from collections.abc import Callable

from windlass import limits
from windlass.tools.job import Job
from windlass.wire.execution import COMMAND_MARK, Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.messages import ShellCommand, ShellCommandData
from windlass.wire.run_events import MessageEnd, MessageStart
from windlass.wire.tools import Process, Spawner


class ShellExecutor:
    """Executes one command. What it printed and its exit code become one assistant message, when it has ended."""

    def __init__(
        self,
        spawner: Spawner,
        environment: dict[str, str],
        new_message_id: Callable[[], str],
        seconds: float = limits.SHELL_SECONDS,
    ) -> None:
        self._spawner = spawner
        self._environment = environment
        self._new_message_id = new_message_id
        self._seconds = seconds

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        command = spec.prompt.removeprefix(COMMAND_MARK)
        width = {"COLUMNS": str(spec.term_width)} if spec.term_width else {}
        shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
        try:
            process = await self._spawner.spawn(
                # The dashes: a command that begins with one of its own would be an option of the shell.
                (shell, "-c", "--", command),
                cwd=spec.workspace_path,
                env={**self._environment, **width},
            )
        except OSError as error:
            return RunOutcome("failed", f"The command could not be started: {error.strerror or error}.")
        output, exit_code = await self._follow(spec, command, process)
        part, id = ShellCommand(ShellCommandData(command, output, exit_code)), self._new_message_id()
        events.emit(MessageStart(id, "assistant", parts=[part]))
        await events.durable(MessageEnd(id, "end_turn"))
        return RunOutcome("completed")

    async def _follow(self, spec: RunSpec, command: str, process: Process) -> tuple[str, int]:
        """What it printed until its end, and its exit code. A cancel ends all of it."""
        job = Job(spec.run_id, spec.session_id, spec.run_id, command, process, kept_bytes=limits.SHELL_OUTPUT_BYTES)
        note = ""
        try:
            async with asyncio.timeout(self._seconds):
                await job.ended()
        except TimeoutError:
            note = f"\n[ended after the time limit of {self._seconds:g} s]"
        finally:
            # If we are cancelled once more while waiting here, the tree still dies: the guardian has been told.
            ended = await job.end()
        return job.output.text() + note, ended.exit_code
