"""`windlass completion`: a script for the shell, and the ids it can complete.

Ids come from the server, if one is there, has the directory open and answers at once. Completing starts nothing, opens
nothing and waits for nobody: a key that hangs is worse than one that does nothing.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from windlass import limits

if TYPE_CHECKING:
    from windlass.client import Client

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_WINDLASS_COMPLETE"  # the name that click gives it; the script sets it when it asks


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that lets your shell complete commands, options and ids.

    Ids are those of the current directory, while it is open: somebody is attached, or something runs in it.

    \b
    Examples:
      eval "$(windlass completion bash)"                       in ~/.bashrc
      eval "$(windlass completion zsh)"                        in ~/.zshrc, below compinit
      windlass completion fish > ~/.config/fish/completions/windlass.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "windlass", VARIABLE).source().rstrip("\n"))


def complete_sessions(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Ids of the directory's sessions that begin so, with their titles."""
    from windlass.cli.safe_text import exact, shortened
    from windlass.client import Session

    async def ask(client: "Client", workspace: str, found: list[CompletionItem[str]]) -> None:
        for session in await client.transport.call("GET", f"{workspace}/sessions", list[Session]):
            _offer(found, session.id, shortened(exact(session.title), 60), incomplete)

    return _asked(ctx, ask)


def complete_runs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Ids of the directory's runs that begin so, with their state and prompt, the newest first."""
    from windlass.cli.safe_text import exact, shortened
    from windlass.client import Run

    async def ask(client: "Client", workspace: str, found: list[CompletionItem[str]]) -> None:
        after = None
        while True:
            query = {"after": after, "limit": limits.RUNS_PER_PAGE}
            page = await client.transport.call("GET", f"{workspace}/runs", list[Run], query=query)
            for run in page:
                _offer(found, run.id, f"{run.state}: {shortened(exact(run.prompt.strip()), 50)}", incomplete)
            if len(page) < limits.RUNS_PER_PAGE:
                return
            after = page[-1].id

    return _asked(ctx, ask)[::-1]


def _offer(found: list[CompletionItem[str]], id: str, title: str, incomplete: str) -> None:
    if id.startswith(incomplete) and id.replace("_", "").replace("-", "").isalnum():
        found.append(CompletionItem(id, help=title or None))
        del found[: -limits.COMPLETION_IDS]


_Ask = Callable[["Client", str, list[CompletionItem[str]]], Awaitable[None]]


def _asked(ctx: click.Context, ask: _Ask) -> list[CompletionItem[str]]:
    from windlass.client import WindlassError

    found: list[CompletionItem[str]] = []
    path = os.path.realpath(ctx.params.get("directory") or Path())
    try:
        asyncio.run(_ask_server(ctx.params, path, ask, found))
    except (WindlassError, TimeoutError, OSError):
        pass  # nobody to ask, or too slow: what has come so far is offered
    return found


async def _ask_server(options: dict[str, Any], path: str, ask: _Ask, found: list[CompletionItem[str]]) -> None:
    from windlass.client import Client, find_server

    # Not by opening the directory: that would be a claim on it, for pressing a key.
    address = find_server(options.get("data_dir"), options.get("url"), options.get("token_file"))
    client = Client(address.url, address.token, retries=0, certificate=address.certificate)
    async with asyncio.timeout(limits.COMPLETION_SECONDS), client:
        for workspace in await client.workspaces():
            if workspace.path == path:
                await ask(client, f"/workspaces/{workspace.id}", found)
