"""`windlass run`: one prompt, its answer on standard output, and an exit code that says how it went."""

import asyncio
import sys
from pathlib import Path

import click

from windlass.cli.connection import opened, run_async
from windlass.cli.one_run import OneRun, Request
from windlass.cli.options import ServerOptions, directory_option, server_options
from windlass.cli.terminal import Terminal


@click.command()
@click.argument("prompt")
@directory_option
@click.option("--session", metavar="ID", help="Go on with this session instead of a new one.")
@click.option("--json", "as_json", is_flag=True, help="Print the events of the session, one JSON object a line.")
@click.option("--yolo", is_flag=True, help="Do not ask before tools act. A deny rule still denies.")
@click.option("--model", metavar="PROVIDER/MODEL", default="", help="Use this model for this run.")
@click.option("--effort", metavar="LEVEL", default="", help="How hard a reasoning model thinks: low, medium, high.")
@server_options
def run(
    prompt: str,
    directory: Path,
    session: str | None,
    as_json: bool,
    yolo: bool,
    model: str,
    effort: str,
    server: ServerOptions,
) -> None:
    """Run PROMPT and print the answer as it comes. PROMPT "-" reads it from standard input.

    The answer goes to standard output, tools and status lines to standard error. The exit code is 0 when the run
    completed, 1 when it failed or was interrupted, 130 when it was cancelled. Ctrl-C cancels the run and waits for its
    end; a second one leaves it to the server.

    \b
    Examples:
      windlass run "Summarise README.md in one sentence"
      git diff | windlass run - > review.md
    """
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text.strip():
        raise click.UsageError("The prompt is empty.", click.get_current_context())
    interactive = prompt != "-" and sys.stdin.isatty()
    request = Request(text, session, model, effort, as_json, interactive)
    sys.exit(run_async(_run(server, directory, yolo, request)))


async def _run(server: ServerOptions, directory: Path, yolo: bool, request: Request) -> int:
    terminal = Terminal()
    async with opened(server, directory, yolo=yolo) as workspace:
        if yolo and not workspace.info.yolo:
            terminal.status("This workspace is already open without --yolo, and stays so: tools will ask.", fg="yellow")
        return await OneRun(workspace, terminal, request, asyncio.get_running_loop()).execute()
