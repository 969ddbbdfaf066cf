"""`windlass cancel`: stop what a session is doing, or one run."""

from pathlib import Path

import click

from windlass.cli.choosing import whole_id
from windlass.cli.completion import complete_runs, complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ServerOptions, directory_option, json_option, server_options
from windlass.cli.runs import find_run
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal
from windlass.client import RunState


@click.command()
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_sessions)
@click.option("--run", "run_id", metavar="ID", help="Cancel only this run.", shell_complete=complete_runs)
@directory_option
@json_option
@server_options
def cancel(session_id: str | None, run_id: str | None, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Cancel everything SESSION is doing and has queued, or with --run one run and nothing else.

    Cancelling something that is over is not an error.

    \b
    Examples:
      windlass cancel ses_9f86
      windlass cancel --run run_1b4f
    """
    if (session_id is None) == (run_id is None):
        raise click.UsageError("Name a session, or a run with --run.", click.get_current_context())
    if session_id is not None:
        _report_session(run_async(_cancel_session(server, directory, session_id)), as_json)
    elif run_id is not None:
        whole, state = run_async(_cancel_run(server, directory, run_id))
        _report_run(whole, state, as_json)


async def _cancel_session(server: ServerOptions, directory: Path, session_id: str) -> list[str]:
    async with opened(server, directory) as workspace:
        return await workspace.cancel(await whole_id(workspace, session_id))


async def _cancel_run(server: ServerOptions, directory: Path, run_id: str) -> tuple[str, RunState]:
    async with opened(server, directory) as workspace:
        whole = (await find_run(workspace, run_id)).id
        return whole, await workspace.cancel_run(whole)


def _report_session(covered: list[str], as_json: bool) -> None:
    if as_json:
        Terminal().json({"canceled": covered})
    else:
        Terminal().status(f"Cancelling {len(covered)} run(s)." if covered else "Nothing was running.")


def _report_run(run_id: str, state: RunState, as_json: bool) -> None:
    if as_json:
        Terminal().json({"run_id": run_id, "state": state})
    else:
        Terminal().status(f"{exact(run_id)} is {state}.")
