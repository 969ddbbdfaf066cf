"""`windlass run`: one prompt, its answer on standard output, and an exit code that says how it went."""

import asyncio
import math
import sys
from pathlib import Path
from typing import Any

import click

from windlass import config, limits
from windlass.cli.attachments import read_attachments
from windlass.cli.completion import complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.one_run import OneRun, Request
from windlass.cli.options import ServerOptions, directory_option, server_options
from windlass.cli.prompt_input import is_terminal, whole_prompt
from windlass.cli.terminal import Terminal

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Duration(click.ParamType[float]):
    """90s, 10m, 24h: as the config writes it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            seconds = config.parse_duration(str(value))
        except config.ConfigError as error:
            self.fail(str(error), param, ctx)
        if not 0 < seconds <= limits.RUN_TIMEOUT_SECONDS:
            self.fail(f"{value} is no time to wait; write 90s, 10m or 24h.", param, ctx)
        return seconds


class Amount(click.ParamType[float]):
    """Money, in the currency of the model's prices."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            amount = float(value)
        except ValueError:
            amount = math.nan
        if not 0 < amount <= limits.USAGE_COST:  # also false for what is no number
            self.fail(f"{value} is no amount; write 0.50 or 2.", param, ctx)
        return amount


@click.command()
@click.argument("prompt", required=False)
@directory_option
@click.option(
    "--session",
    metavar="ID",
    default="",
    shell_complete=complete_sessions,
    help="Go on with this session instead of a new one. Its beginning is enough.",
)
@click.option("--continue", "newest", is_flag=True, help="Go on with the newest session of the directory.")
@click.option(
    "--attach",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Send this file along: a picture or text. Several times for several.",
)
@click.option("--model", metavar="PROVIDER/MODEL", default="", help="Use this model for this run.")
@click.option(
    "--effort",
    metavar="LEVEL",
    type=click.Choice(EFFORTS),
    help=f"How hard a reasoning model thinks: {', '.join(EFFORTS)}.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="PATTERN",
    help='Do not ask about what fits, in this run: "edit", "bash:npm test*". Several times for several.',
)
@click.option("--plan", is_flag=True, help="Plan mode: the session's runs may look and ask, and change nothing.")
@click.option("--yolo", is_flag=True, help="Do not ask before tools act. A deny rule still denies.")
@click.option("--no-wait", is_flag=True, help="Wait for nobody: what would be asked is denied, a question declined.")
@click.option("--timeout", metavar="DURATION", type=Duration(), help="Cancel the run after this long: 90s, 10m.")
@click.option("--max-cost", metavar="AMOUNT", type=Amount(), help="Stop the run when it has cost this much.")
@click.option("--json", "as_json", is_flag=True, help="Print the events of the session, one JSON object a line.")
@click.option("--quiet", is_flag=True, help="No lines about tools and status; what goes wrong is still said.")
@server_options
def run(
    prompt: str | None,
    directory: Path,
    session: str,
    newest: bool,
    attach: tuple[Path, ...],
    model: str,
    effort: str | None,
    allow: tuple[str, ...],
    plan: bool,
    yolo: bool,
    no_wait: bool,
    timeout: float | None,
    max_cost: float | None,
    as_json: bool,
    quiet: bool,
    server: ServerOptions,
) -> None:
    """Run PROMPT and print the answer as it comes.

    Without PROMPT, or with "-", the prompt is read from standard input. Beside a PROMPT, what is piped in is added
    below it as a block of its own; both together may have a million characters. Standard input is then read to its end.

    The answer goes to standard output, tools and status lines to standard error. With --json standard output has the
    event stream of the session and its sub-agents; the last line is the `run_complete` of this run.

    \b
    Exit codes:
      0    the run completed
      1    it failed or was interrupted, or the command could not be carried out
      2    the command was called wrongly
      124  --timeout was over, and the run was cancelled
      130  the run was cancelled, here or by someone else

    Ctrl-C cancels the run and waits for its end; a second one leaves it to the server. A permission or a question waits
    for whoever answers first, here or elsewhere; with --no-wait for nobody. Where no server is running, one is started
    that leaves when its last client has.

    \b
    Examples:
      windlass run "Summarise README.md in one sentence"
      git diff | windlass run "Review this change" > review.md
      windlass run --allow "bash:npm test*" --no-wait --timeout 10m --max-cost 0.50 "Mend the test"
      windlass run --continue --attach screenshot.png "It still looks like this"
    """
    if session and newest:
        raise click.UsageError("--session and --continue do not go together.", click.get_current_context())
    terminal = Terminal()
    request = Request(
        attachments=read_attachments(attach),
        prompt=whole_prompt(prompt, terminal.status),
        session_id=session,
        newest_session=newest,
        model=model,
        effort=effort or "",
        allow=allow,
        max_cost=max_cost or 0.0,
        timeout=timeout or 0.0,
        as_json=as_json,
        quiet=quiet,
        interactive=prompt not in (None, "-") and is_terminal() and not no_wait,
        no_wait=no_wait,
        plan=plan,
    )
    sys.exit(run_async(_run(server, directory, yolo, request, terminal)))


async def _run(server: ServerOptions, directory: Path, yolo: bool, request: Request, terminal: Terminal) -> int:
    async with opened(server, directory, yolo=yolo, quiet=request.quiet) as workspace:
        if yolo and not workspace.info.yolo:
            terminal.status("This workspace is already open without --yolo, and stays so: tools will ask.", fg="yellow")
        return await OneRun(workspace, terminal, request, asyncio.get_running_loop()).execute()
