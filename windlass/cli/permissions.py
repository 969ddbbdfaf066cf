"""`windlass permissions`: what tools wait to be allowed, and the answer."""

from pathlib import Path

import click

from windlass.cli.asking import described
from windlass.cli.choosing import choose
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal
from windlass.client import Action, PermissionRequest


@click.group(cls=ListingGroup)
def permissions() -> None:
    """See what waits for an answer in a workspace, and answer it.

    \b
    Examples:
      windlass permissions
      windlass permissions allow perm_2c26
      windlass permissions deny perm_2c26
    """


@permissions.command("list")
@directory_option
@json_option
@server_options
def list_permissions(directory: Path, as_json: bool, server: ServerOptions) -> None:
    """List what is pending.

    \b
    Example:
      windlass permissions list -C ~/project
    """

    async def work() -> list[PermissionRequest]:
        async with opened(server, directory) as workspace:
            return await workspace.permissions()

    pending = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(pending)
        return
    for request in pending:
        terminal.heading(exact(request.id))
        for line in described(request):
            terminal.line(line)
    if not pending:
        terminal.status("Nothing waits for an answer.")


@permissions.command("allow")
@click.argument("permission_id", metavar="ID")
@click.option("--session", "for_session", is_flag=True, help="Also the same thing again, for the rest of the session.")
@click.option("--pattern", default="", help="Also what fits this, for the rest of the session.")
@directory_option
@server_options
def allow(permission_id: str, for_session: bool, pattern: str, directory: Path, server: ServerOptions) -> None:
    """Allow exactly what was asked.

    \b
    Examples:
      windlass permissions allow perm_2c26 --session
      windlass permissions allow perm_2c26 --pattern 'npm test*'
    """
    _answer(server, directory, permission_id, "allow_session" if for_session or pattern else "allow", pattern)


@permissions.command("deny")
@click.argument("permission_id", metavar="ID")
@directory_option
@server_options
def deny(permission_id: str, directory: Path, server: ServerOptions) -> None:
    """Deny it; the agent is told so and goes on.

    \b
    Example:
      windlass permissions deny perm_2c26
    """
    _answer(server, directory, permission_id, "deny")


def _answer(server: ServerOptions, directory: Path, permission_id: str, action: Action, pattern: str = "") -> None:
    async def work() -> bool:
        async with opened(server, directory) as workspace:
            pending = [request.id for request in await workspace.permissions()]
            return await workspace.grant(choose(permission_id, pending, "pending permission"), action, pattern)

    if not run_async(work()):
        raise click.ClickException("Someone else answered first, or it was withdrawn. Nothing was changed.")
    Terminal().status("Denied." if action == "deny" else "Allowed.")
