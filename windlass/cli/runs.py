"""`windlass runs`: what was asked, and what became of it."""

import shutil
import time
from pathlib import Path
from typing import cast, get_args

import click

from windlass import limits
from windlass.cli.choosing import choose
from windlass.cli.completion import complete_runs, complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.progress import working
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.cli.timeline import drawn
from windlass.cli.times import local_time
from windlass.cli.used import used
from windlass.client import NotFound, Run, RunState, WorkspaceHandle
from windlass.wire.timeline import Timeline


@click.group(cls=ListingGroup)
def runs() -> None:
    """List and show the runs of a workspace, and what each spent its time on.

    \b
    Examples:
      windlass runs --state running
      windlass runs show run_1b4f
      windlass runs timeline run_1b4f
    """


@runs.command("list")
@directory_option
@click.option("--session", metavar="ID", help="Only those of this session.", shell_complete=complete_sessions)
@click.option("--state", type=click.Choice(get_args(RunState)), help="Only those in this state.")
@click.option("--limit", type=click.IntRange(1, limits.RUNS_PER_PAGE), default=limits.RUNS_PER_PAGE_DEFAULT)
@json_option
@server_options
def list_runs(
    directory: Path, session: str | None, state: str | None, limit: int, as_json: bool, server: ServerOptions
) -> None:
    """List runs, the oldest first; of many, the last ones.

    \b
    Example:
      windlass runs list --session ses_9f86d081884c7d65 --json
    """

    async def work() -> list[Run]:
        async with opened(server, directory) as workspace:
            return (await every_run(workspace, session, cast(RunState | None, state)))[-limit:]

    with working("Reading the runs"):
        found = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(found)
    elif not found:
        terminal.status("No such runs here.")
    else:
        terminal.table(["ID", "STATE", "CREATED", "PROMPT"], [_row(run) for run in found])


def _row(run: Run) -> list[str]:
    return [exact(run.id), run.state, local_time(run.created_at), shortened(exact(run.prompt.strip()), 60)]


@runs.command("show")
@click.argument("run_id", metavar="ID", shell_complete=complete_runs)
@directory_option
@json_option
@server_options
def show_run(run_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Print all about one run. The beginning of an ID is enough.

    \b
    Example:
      windlass runs show run_1b4f
    """

    async def work() -> Run:
        async with opened(server, directory) as workspace:
            return await find_run(workspace, run_id)

    run = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(run)
        return
    ending = " (a cancel was asked for)" if run.cancel_requested and not run.is_terminal else ""
    rows = {
        "Run": exact(run.id),
        "Session": exact(run.session_id),
        "State": f"{run.state}{ending}",
        "Created": local_time(run.created_at),
        "Started": local_time(run.started_at),
        "Ended": local_time(run.ended_at),
        "Used": used(run.usage.prompt_tokens, run.usage.completion_tokens, run.usage.cache_read_tokens, run.cost),
        "Error": exact(run.error),
    }
    for name, value in rows.items():
        if value:
            terminal.line(f"{name + ':':<9} {value}")
    terminal.line(f"Prompt:\n{prose(run.prompt)}")


@runs.command("timeline")
@click.argument("run_id", metavar="ID", shell_complete=complete_runs)
@directory_option
@json_option
@server_options
def show_timeline(run_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Draw what a run spent its time on: waiting for its turn, the model, tools, and people.

    \b
    Example:
      windlass runs timeline run_1b4f
    """

    async def work() -> Timeline:
        async with opened(server, directory) as workspace:
            return await workspace.timeline((await find_run(workspace, run_id)).id)

    timeline = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(timeline)
        return
    for line in drawn(timeline, time.time(), shutil.get_terminal_size().columns):
        terminal.line(line)
    if not timeline.whole:
        terminal.status("The log of this run was trimmed: only its outline is left.")


async def find_run(workspace: WorkspaceHandle, run_id: str) -> Run:
    """The run of that id, or the only one whose id begins so."""
    try:
        return await workspace.run(run_id)
    except NotFound:
        runs = {run.id: run for run in await every_run(workspace)}
        return runs[choose(run_id, list(runs), "run")]


async def every_run(workspace: WorkspaceHandle, session: str | None = None, state: RunState | None = None) -> list[Run]:
    """All of them, page by page, the oldest first: the server's first page alone would leave out the newest."""
    found: list[Run] = []
    while True:
        page = await workspace.runs(session, state, after=found[-1].id if found else None, limit=limits.RUNS_PER_PAGE)
        found += page
        if len(page) < limits.RUNS_PER_PAGE:
            return found
