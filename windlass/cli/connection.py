"""From options to an open connection, and from an error to one line."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from windlass import limits
from windlass.cli.options import ServerOptions
from windlass.client import Client, WindlassError, WorkspaceHandle, find_server

Result = TypeVar("Result")


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


@asynccontextmanager
async def connected(server: ServerOptions) -> AsyncIterator[Client]:
    address = find_server(server.data_directory, server.url, server.token_file)
    async with Client(address.url, address.token) as client:
        yield client


@asynccontextmanager
async def opened(server: ServerOptions, directory: Path, *, yolo: bool = False) -> AsyncIterator[WorkspaceHandle]:
    """The workspace of a directory, held while the command runs. At its end this client says goodbye."""
    async with connected(server) as client:
        workspace = await client.open(directory, yolo=yolo)
        try:
            yield workspace
        finally:
            # A server that is gone meanwhile must not turn a finished command into a failed one, nor hold it up.
            with suppress(WindlassError, TimeoutError):
                async with asyncio.timeout(limits.CLIENT_GOODBYE_SECONDS):
                    # For good: a create of ours that is still on its way must not open it again behind us (R41).
                    await client.retire()
