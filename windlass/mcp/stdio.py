"""A connection over the standard input and output of a process, which the guardian keeps.

Not the SDK's own: what that starts would live on when this server is killed. One line is one JSON-RPC message.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import structlog
from mcp.shared.message import SessionMessage

from windlass import limits
from windlass.mcp.ending import Ending
from windlass.mcp.last_words import LastWords
from windlass.mcp.pipe import LineTooLong, Pipe
from windlass.mcp.place import ServerSpawner
from windlass.wire.tools import Process

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Outgoing = MemoryObjectReceiveStream[SessionMessage]
    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

logger = structlog.get_logger("windlass.mcp")
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)
_ID = re.compile(rb'"id"\s*:\s*(\d{1,9})\b')  # ours are small numbers
_ID_BYTES = 200  # from either end of a message: everyone writes it first or last
_EXIT_SECONDS = 0.5  # between the end of a pipe and its own: a process that is ending is not waited for longer


@contextlib.asynccontextmanager
async def stdio_streams(
    spawner: ServerSpawner, argv: Sequence[str], environment: Mapping[str, str], ending: Ending, words: LastWords
) -> AsyncIterator["Streams"]:
    """The two streams of an MCP session. Raises OSError when the command cannot be started.

    Leaving it ends the process and whatever it started, politely at first, and returns when that is done.
    """
    process, stdin, stderr = await _start(spawner, argv, dict(environment))
    stdout = Pipe(process.output)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    # Room for some: a cancelled call leaves its notice here without waiting for a server that does not read.
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](limits.MCP_OUTBOX_MESSAGES)
    writing = asyncio.create_task(_write(stdin, outgoing, process, ending), name="mcp stdin")
    reading = [
        asyncio.create_task(_Reader(incoming, outgoing, process, ending).follow(stdout), name="mcp stdout"),
        asyncio.create_task(words.follow(stderr), name="mcp stderr"),
    ]
    try:
        yield read, write
    finally:
        try:
            await _to_its_end(_close(process, ending, (stdin, stdout, stderr), writing, reading))
        finally:
            for stream in (incoming, read, write, outgoing):
                stream.close()


async def _close(
    process: Process,
    ending: Ending,
    pipes: tuple[Pipe, Pipe, Pipe],
    writing: "asyncio.Task[None]",
    reading: "list[asyncio.Task[None]]",
) -> None:
    if ending.near:
        await ending.wait()  # bounded: whoever noticed first, reader or writer, finds out how the process ended
    ending.set("")  # from here on it is we who end it
    await _cancel([writing])
    pipes[0].close()  # how the protocol says goodbye
    await _end(process)
    await _cancel(reading)
    for pipe in pipes[1:]:
        pipe.close()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for the work, also when we are cancelled meanwhile: a process and its pipes would be left behind."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _start(
    spawner: ServerSpawner, argv: Sequence[str], environment: dict[str, str]
) -> tuple[Process, Pipe, Pipe]:
    reading, writing = os.pipe()
    errors, errors_writing = os.pipe()
    try:
        # Not in the workspace: `npx` and `python -m` look for code where they are started, and would run what a
        # repository ships (A25).
        process = await spawner.spawn(argv, cwd="/", env=environment, stdin=reading, stderr=errors_writing)
    except BaseException:
        os.close(writing)
        os.close(errors)
        raise
    finally:
        os.close(reading)
        os.close(errors_writing)
    return process, Pipe(writing), Pipe(errors)


async def _write(stdin: Pipe, outgoing: "Outgoing", process: Process, ending: Ending) -> None:
    try:
        async for message in outgoing:
            await stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
    except OSError:
        # Mostly it is ending, and its output is just about to say so too: its exit code tells a person more than this.
        ending.near = True
        ending.set(await _how_it_ended(process, "It does not read its input any more."))
    except _GONE:
        pass  # the session is over


class _Reader:
    """Turns the lines of a process into messages of the session."""

    def __init__(self, incoming: "Incoming", outgoing: "Outgoing", process: Process, ending: Ending) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._process = process
        self._ending = ending
        self._nonsense = 0
        self._is_left = False

    async def follow(self, stdout: Pipe) -> None:
        """Until the output ends; then calls that wait are told at once, and why is said where people look."""
        try:
            async for line in stdout.lines(limits.MCP_MESSAGE_BYTES):
                if not await self._take(line):
                    break
        except LineTooLong:
            self._ending.set(f"It sent a message of more than {limits.MCP_MESSAGE_BYTES // limits.MIB} MiB.")
        if not self._is_left:
            self._ending.near = True  # before anyone whose call ends now can make the next one
        self._incoming.close()
        if self._nonsense:
            logger.info("an MCP server wrote lines that are no JSON-RPC messages", lines=self._nonsense)
        if not self._is_left:
            self._ending.set(await _how_it_ended(self._process, "It closed its output."))
        with contextlib.suppress(OSError):
            while await stdout.read():
                pass  # to its end: a process that cannot write cannot end politely either

    async def _take(self, line: bytes) -> bool:
        """Hand one message over; False when there is no use in another."""
        if not line.strip():
            return True
        message = await _parsed(line)
        if message is None:
            self._nonsense += 1  # many print a banner; only counted, since it could hold anything
            return True
        waiting = self._outgoing.statistics().tasks_waiting_send
        if isinstance(message, types.JSONRPCRequest) and waiting >= limits.MCP_OUTBOX_MESSAGES:
            # Each is answered by a task of its own, and they would pile up behind a full pipe.
            self._ending.set("It asks and does not read the answers.")
            return False
        try:
            await self._incoming.send(SessionMessage(message))
        except _GONE:
            self._is_left = True  # it goes on speaking; it is we who have left, and why is known already
            return False
        return True


async def _how_it_ended(process: Process, otherwise: str) -> str:
    """Its exit code, if it has one soon; `otherwise` is what is known of one that lives on."""
    try:
        async with asyncio.timeout(_EXIT_SECONDS):
            exit = await process.wait()
    except TimeoutError:
        return otherwise
    return f"It ended with exit code {exit.exit_code}."


async def _parsed(line: bytes) -> types.JSONRPCMessage | None:
    if len(line) < limits.MCP_THREAD_BYTES:
        return _parse(line)
    return await asyncio.to_thread(_parse, line)


def _parse(line: bytes) -> types.JSONRPCMessage | None:
    """The message; an error in its place if it seems to be an answer that cannot be read, else None."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        found = _ID.search(line[:_ID_BYTES] + line[-_ID_BYTES:])
    if found is None:
        return None
    # Whoever waits for it would wait until the call's time is over.
    error = types.ErrorData(code=types.PARSE_ERROR, message="its answer cannot be read")
    return types.JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


async def _end(process: Process) -> None:
    for seconds in (limits.MCP_LEAVE_SECONDS, limits.KILL_GRACE_SECONDS + 0.5):
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
            return
        except TimeoutError:
            process.kill()


async def _cancel(tasks: Sequence["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a pipe of an MCP server broke", error=type(error).__name__)
