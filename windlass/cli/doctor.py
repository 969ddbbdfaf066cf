"""`windlass doctor`: looks at everything a user could get wrong and says what to do about it."""

import sys
from pathlib import Path

import click

from windlass.cli.checks import check_machine, check_models
from windlass.cli.connection import run_async
from windlass.cli.finding import Finding
from windlass.cli.options import ServerOptions, json_option, server_options
from windlass.cli.place_checks import check_place
from windlass.cli.progress import working
from windlass.cli.safe_text import exact
from windlass.cli.server_checks import check_providers, check_server
from windlass.cli.terminal import Terminal, styled

_COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red"}


@click.command()
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The config file to check.")
@click.option("--online", is_flag=True, help="Also ask the providers whether they take their keys.")
@json_option
@server_options
def doctor(config_file: Path | None, online: bool, as_json: bool, server: ServerOptions) -> None:
    """Check this installation: one line each, OK, WARN or FAIL, with what to do. Exits 1 when something fails.

    It changes nothing, and without --online it asks nobody outside of this machine but the server you name.

    \b
    Examples:
      windlass doctor
      windlass doctor --online --json
    """
    with working("Looking at this machine") as progress:
        findings = check_machine(server.data_directory, config_file)
        findings += check_place(server.data_directory, config_file)
        findings += run_async(check_models(config_file))
        progress.what = "Asking the server"
        findings += run_async(check_server(server))
        if online:
            progress.what = "Asking the providers"
            findings += run_async(check_providers(config_file))
    terminal = Terminal()
    if as_json:
        terminal.json(findings)
    else:
        for finding in findings:
            _print(terminal, finding)
    sys.exit(1 if any(finding.level == "FAIL" for finding in findings) else 0)


def _print(terminal: Terminal, finding: Finding) -> None:
    level = styled(sys.stdout, f"{finding.level:<4}", fg=_COLOURS[finding.level])
    terminal.line(f"{level}  {finding.what}: {exact(finding.says)}")
