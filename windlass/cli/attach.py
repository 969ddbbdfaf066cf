"""`windlass attach`: stay in a workspace, see what everyone does there, and take part by typing."""

import asyncio
from pathlib import Path

import click

from windlass.cli.attached import Attached
from windlass.cli.connection import opened, run_async
from windlass.cli.console import typed_lines
from windlass.cli.options import ServerOptions, server_options
from windlass.cli.terminal import Terminal


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path())
@click.option("--session", metavar="ID", help="Look at this session. [default: the newest, or a new one]")
@server_options
def attach(directory: Path, session: str | None, server: ServerOptions) -> None:
    """Join the workspace of DIRECTORY (default: the current one).

    Shows the end of a session and then everything as it happens, also what other people prompt and answer. What you
    type is a prompt; a line that begins with a slash is a command (/help lists them). Leaving, by /quit, Ctrl-D or
    Ctrl-C, stops nothing: runs belong to the server. If the server restarts, it goes on where it was.

    \b
    Example:
      windlass attach ~/project
    """
    run_async(_attach(server, directory, session))


async def _attach(server: ServerOptions, directory: Path, session: str | None) -> None:
    async with opened(server, directory) as workspace, typed_lines() as lines:
        attached = Attached(workspace, Terminal())
        following = asyncio.create_task(attached.follow(session))
        typing = asyncio.create_task(attached.obey(lines))
        try:
            # Whichever ends first ends it: the stream was refused, or the person left.
            await asyncio.wait({following, typing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (following, typing):
                task.cancel()
            endings = await asyncio.gather(following, typing, return_exceptions=True)
        for ending in endings:
            if isinstance(ending, BaseException) and not isinstance(ending, asyncio.CancelledError):
                raise ending
