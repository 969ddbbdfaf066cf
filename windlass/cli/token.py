"""`windlass token`: who may talk to the server. Works on the data directory, so it also works without a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass import config
from windlass.cli.connection import refusals_on_one_line
from windlass.cli.options import ListingGroup, data_dir_option, json_option
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal

if TYPE_CHECKING:
    from windlass.server.tokens import TokenStore

SCOPES = ("admin", "operate", "read", "worker")


@click.group(cls=ListingGroup)
def token() -> None:
    """Make, list and revoke tokens.

    \b
    Examples:
      (umask 077; windlass token create phone --scope operate > phone.token)
      windlass token revoke phone
    """


@token.command("list")
@data_dir_option
@json_option
def list_tokens(data_dir: Path | None, as_json: bool) -> None:
    """List the tokens' names and scopes. The tokens themselves are not kept readable.

    \b
    Example:
      windlass token list
    """
    with _store(data_dir) as store:
        found = store.list()
    terminal = Terminal()
    if as_json:
        terminal.json(found)
    else:
        rows = [[exact(info.name), exact(info.scope), exact(info.created_at)] for info in found]
        terminal.table(["NAME", "SCOPE", "CREATED"], rows)


@token.command("create")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="operate",
    show_default=True,
    help="admin: everything; operate: prompt, cancel, answer; read: look; worker: serve runs.",
)
@data_dir_option
def create_token(name: str, scope: str, data_dir: Path | None) -> None:
    """Make a token and print it, this once.

    \b
    Example:
      (umask 077; windlass token create ci --scope operate > ci.token)
    """
    with _store(data_dir) as store:
        secret = store.create(name, scope)
    terminal = Terminal()
    terminal.line(secret)
    terminal.status("Keep it where only you can read it: it is not shown again.")


@token.command("revoke")
@click.argument("name")
@data_dir_option
def revoke_token(name: str, data_dir: Path | None) -> None:
    """Make a token worthless, at once.

    \b
    Example:
      windlass token revoke phone
    """
    with _store(data_dir) as store:
        revoked = store.revoke(name)
    if not revoked:
        raise click.ClickException(f"There is no token named {name!r}. `windlass token list` shows them.")
    Terminal().status(f"Revoked {exact(name)}.")


@contextmanager
def _store(data_dir: Path | None) -> Iterator["TokenStore"]:
    # Here, not at the top: `windlass token --help` needs no server code.
    from windlass.server.tokens import TokenStore

    directory = data_dir or config.default_data_dir()
    try:
        with refusals_on_one_line():
            yield TokenStore(directory)
    except OSError as error:
        raise click.ClickException(f"The tokens in {directory} cannot be used: {error.strerror}.") from error
