"""`windlass queue`: prompts that wait for their turn, and how to take them back."""

from pathlib import Path

import click

from windlass.cli.choosing import whole_id
from windlass.cli.completion import complete_runs, complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.runs import every_run, find_run
from windlass.cli.safe_text import exact, shortened
from windlass.cli.terminal import Terminal
from windlass.cli.times import local_time
from windlass.client import Run


class QueueGroup(ListingGroup):
    """A group in which what is no command is a session: `windlass queue ses_9f86` lists what waits there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands and not ctx.resilient_parsing:
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=QueueGroup)
def queue() -> None:
    """See what waits behind other runs, and remove it again. What has started is stopped by `windlass cancel`.

    \b
    Examples:
      windlass queue
      windlass queue ses_9f86
      windlass queue remove run_1b4f
      windlass queue clear ses_9f86
    """


@queue.command("list")
@click.argument("session_id", metavar="[SESSION]", default="", shell_complete=complete_sessions)
@directory_option
@json_option
@server_options
def list_queue(session_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """List what waits in the workspace or in one session, the next one first.

    \b
    Example:
      windlass queue list ses_9f86 --json
    """

    async def work() -> list[Run]:
        async with opened(server, directory) as workspace:
            if session_id:
                return await workspace.queue(await whole_id(workspace, session_id))
            # One that was removed stays `queued` until its turn comes; then it ends without having started.
            return [run for run in await every_run(workspace, state="queued") if not run.cancel_requested]

    waiting = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(waiting)
    elif not waiting:
        terminal.status("Nothing waits.")
    else:
        terminal.table(["RUN", "SESSION", "SINCE", "PROMPT"], [_row(run) for run in waiting])


def _row(run: Run) -> list[str]:
    return [exact(run.id), exact(run.session_id), local_time(run.created_at), shortened(exact(run.prompt.strip()), 60)]


@queue.command("remove")
@click.argument("run_id", metavar="RUN", shell_complete=complete_runs)
@directory_option
@server_options
def remove_run(run_id: str, directory: Path, server: ServerOptions) -> None:
    """Remove one prompt that waits. One that has started meanwhile is left alone, and said.

    \b
    Example:
      windlass queue remove run_1b4f
    """

    async def work() -> str:
        async with opened(server, directory) as workspace:
            whole = (await find_run(workspace, run_id)).id
            await workspace.remove_queued(whole)
            return whole

    Terminal().status(f"Removed {exact(run_async(work()))}.")


@queue.command("clear")
@click.argument("session_id", metavar="SESSION", shell_complete=complete_sessions)
@directory_option
@server_options
def clear_session(session_id: str, directory: Path, server: ServerOptions) -> None:
    """Remove everything that waits in a session. What runs there goes on.

    \b
    Example:
      windlass queue clear ses_9f86
    """

    async def work() -> int:
        async with opened(server, directory) as workspace:
            whole = await whole_id(workspace, session_id)
            waiting = await workspace.queue(whole)
            await workspace.clear_queue(whole)
            return len(waiting)

    count = run_async(work())
    Terminal().status(f"Removed {count} run(s)." if count else "Nothing was waiting.")
