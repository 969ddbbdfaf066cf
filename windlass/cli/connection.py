"""From options to an open connection, and from an error to one line."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from windlass import limits
from windlass.cli.options import ServerOptions
from windlass.cli.progress import working
from windlass.cli.safe_text import exact, shortened
from windlass.cli.terminal import Terminal
from windlass.client import (
    Client,
    ServerUnreachable,
    Unavailable,
    WindlassError,
    WorkspaceHandle,
    find_server,
)
from windlass.client.discovery import URL_VARIABLE
from windlass.client.errors import NoServer, ServerNotStarted

Result = TypeVar("Result")
_LEFT = (NoServer, ServerUnreachable, Unavailable)  # what a server that is just leaving looks like
STARTED = "Started a server (it leaves when its last client has; `windlass serve` keeps one)."


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine; what the server refused becomes the command's one-line error."""
    with refusals_on_one_line():
        return asyncio.run(work)


@contextmanager
def refusals_on_one_line() -> Iterator[None]:
    try:
        yield
    except WindlassError as error:
        raise click.ClickException(error.message) from error
    except UnicodeEncodeError as error:
        # Arguments and names of files are bytes to the system; what is sent is text.
        shown = shortened(str(error.object), limits.CONSOLE_STATUS_CHARACTERS)
        raise click.ClickException(f"{shown!r} is not valid UTF-8, so it cannot be sent.") from error


@asynccontextmanager
async def connected(server: ServerOptions) -> AsyncIterator[Client]:
    """A client of a server that is running already."""
    address = find_server(server.data_directory, server.url, server.token_file)
    async with Client(address.url, address.token, certificate=address.certificate) as client:
        yield client


@asynccontextmanager
async def opened(
    server: ServerOptions, directory: Path, *, yolo: bool = False, quiet: bool = False
) -> AsyncIterator[WorkspaceHandle]:
    """The workspace of a directory, held while the command runs. At its end this client says goodbye.

    Where no server is running one is started, unless the user named one or wants none; that is said, unless `quiet`.
    """
    client, workspace = await _open(server, directory, yolo, quiet)
    async with client:
        try:
            yield workspace
        finally:
            # A server that is gone meanwhile must not turn a finished command into a failed one, nor hold it up.
            with suppress(WindlassError, TimeoutError):
                async with asyncio.timeout(limits.CLIENT_GOODBYE_SECONDS):
                    # For good: a create of ours that is still on its way must not open it again behind us (R41).
                    await client.retire()


async def _open(server: ServerOptions, directory: Path, yolo: bool, quiet: bool) -> tuple[Client, WorkspaceHandle]:
    may_start = server.start and not server.url and not os.environ.get(URL_VARIABLE)
    tries = limits.START_TRIES if may_start else 1
    while True:
        tries -= 1
        try:
            if may_start:
                await _ensure(server.data_directory, quiet)
            return await _join(server, directory, yolo)
        except _LEFT:
            # It left between being found and being asked (R36): it starts no run any more, so another one is started.
            if not tries:
                raise


async def _ensure(data_dir: Path, quiet: bool) -> None:
    """See to it that the data directory's server is running."""
    from windlass.client import starting  # most commands find a server, and need none of this

    if await starting.answering(data_dir) is not None:
        return
    terminal = Terminal()
    try:
        with working("Starting a server"):
            started = await starting.start(data_dir)
    except ServerNotStarted as error:
        for line in error.log:
            terminal.status(f"  {exact(line)}")
        raise
    if started.new and not quiet:
        terminal.status(STARTED)


async def _join(server: ServerOptions, directory: Path, yolo: bool) -> tuple[Client, WorkspaceHandle]:
    # In a thread: a file is read, and the data directory may be on a network.
    address = await asyncio.to_thread(find_server, server.data_directory, server.url, server.token_file)
    client = Client(address.url, address.token, certificate=address.certificate)
    try:
        return client, await client.open(directory, yolo=yolo)
    except BaseException:
        await client.close()
        raise
