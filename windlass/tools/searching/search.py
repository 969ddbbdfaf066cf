"""Having something searched for: one process for one search, ended with it whatever happens (`search_process.py`)."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import windlass
from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import ToolError, ToolOutput

_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from windlass.tools.searching.search_process import main; main()"


class _Answer(msgspec.Struct):
    text: str = ""
    metadata: dict[str, Any] = {}
    error: str = ""


async def search(root: WorkspaceRoot, request: dict[str, Any], environment: dict[str, str]) -> ToolOutput:
    """The answer to a request; raises ToolError. A cancel ends the process before it gets through."""
    bounds = {"seconds": limits.SEARCH_SECONDS, "memory_bytes": limits.SEARCH_MEMORY_BYTES}
    descriptor = root.duplicate()
    try:
        process = await _start(descriptor, environment)
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}.") from None
    finally:
        os.close(descriptor)
    try:
        async with asyncio.timeout(limits.SEARCH_SECONDS):
            said, _ = await process.communicate(msgspec.json.encode({**request, **bounds, "workspace": root.path}))
    except TimeoutError:
        raise ToolError(
            f"The search took longer than {limits.SEARCH_SECONDS:g} s and was ended. Search in a smaller `path`, or "
            "use a simpler pattern."
        ) from None
    finally:
        await _end(process)
    return _output(said, process.returncode)


async def _start(descriptor: int, environment: dict[str, str]) -> Process:
    """On the loop: it takes a millisecond or two, and leaves no moment in which a cancel would lose a child."""
    package = str(Path(windlass.__file__).parent.parent)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, package, str(descriptor)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        pass_fds=(descriptor,),
        env=environment,
        cwd="/",
        start_new_session=True,
    )


async def _end(process: Process) -> None:
    if process.returncode is None:
        # Its whole group: ripgrep belongs to it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # A bound, because one that waits for a disk that is gone cannot be killed, and must not hold up the run.
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.KILL_GRACE_SECONDS):
            await process.wait()


def _output(said: bytes, exit_code: int | None) -> ToolOutput:
    if exit_code != 0 or len(said) > limits.SEARCH_ANSWER_BYTES:
        raise ToolError(f"The search failed (exit code {exit_code}). Try a simpler pattern or a smaller `path`.")
    answer = msgspec.json.decode(said, type=_Answer)
    if answer.error:
        raise ToolError(answer.error)
    return ToolOutput(answer.text, metadata=msgspec.json.encode(answer.metadata).decode())
