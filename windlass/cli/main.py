"""The program `windlass`: finds the command, runs it, and turns what went wrong into one line.

Commands are named here and loaded only when used: `windlass --help` must not wait for an HTTP library to load.
"""

import errno
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING

import click

from windlass import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# name: (where it is, what it does)
COMMANDS = {
    "serve": ("windlass.cli.serve:serve", "Run the server."),
    "run": ("windlass.cli.run:run", "Run one prompt and print the answer."),
    "attach": ("windlass.cli.attach:attach", "Join a workspace: see everything live, type prompts."),
    "sessions": ("windlass.cli.sessions:sessions", "List, show, search, export and delete conversations."),
    "runs": ("windlass.cli.runs:runs", "List and show runs, and draw what they spent time on."),
    "queue": ("windlass.cli.queue:queue", "See what waits its turn, and remove it."),
    "cancel": ("windlass.cli.cancel:cancel", "Cancel what a session is doing, or one run."),
    "permissions": ("windlass.cli.permissions:permissions", "See what waits for an answer, and answer it."),
    "questions": ("windlass.cli.questions:questions", "See what agents ask, and answer it."),
    "agents": ("windlass.cli.agents:agents", "List, show and write the sessions of agents kept as files."),
    "mailbox": ("windlass.cli.mailbox:mailbox", "See and send the messages between agents."),
    "pair": ("windlass.cli.pair:pair", "Open the page on a phone or in a browser."),
    "token": ("windlass.cli.token:token", "Make, list and revoke the tokens clients use."),
    "worker": ("windlass.cli.worker:worker", "Serve an executor to parents over a WebSocket."),
    "backup": ("windlass.cli.upkeep:backup", "Copy the journal to a file, also while the server runs."),
    "prune": ("windlass.cli.upkeep:prune", "Trim the log now and give the space back."),
    "rebuild": ("windlass.cli.upkeep:rebuild", "Build the tables anew from the log, or check them."),
    "restore": ("windlass.cli.upkeep:restore", "Put a backup of the journal in its place."),
    "models": ("windlass.cli.models:models", "Show the models that can be used, and how to use others."),
    "logs": ("windlass.cli.logs:logs", "Show the server's log, and follow it."),
    "completion": ("windlass.cli.completion:completion", "Print a script that completes commands in your shell."),
    "doctor": ("windlass.cli.doctor:doctor", "Check this installation and say what to do."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """As click's own, which would load every command to ask it for its help."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="windlass")
def windlass() -> None:
    """An agent server that many clients share.

    \b
    Start the server in one terminal:      windlass serve
    Ask something in another:              windlass run "What is in this directory?"
    Or stay and watch what everyone does:  windlass attach
    Open the page, here or on a phone:     windlass pair
    Something does not work:               windlass doctor

    Client commands find the server by --url and --token-file, by WINDLASS_URL and WINDLASS_TOKEN_FILE, or by the
    address a local server leaves in its data directory. Where none is running they start one, which leaves after them.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit: 0 fine, 1 it failed, 2 it was called wrongly, 130 interrupted."""
    _have_streams()
    _never_fail_to_print()
    try:
        windlass.main(args=arguments, prog_name="windlass", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.UsageError as error:
        hint = f" Try `{error.ctx.command_path} --help`." if error.ctx is not None else ""
        _complain(error.format_message() + hint)
        sys.exit(2)
    except click.ClickException as error:
        _complain(error.format_message())
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        # What could not be written would be tried again at the exit, and fail with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        _complain(f"The output cannot be written: {error.strerror}.")
        sys.exit(1)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def _complain(message: str) -> None:
    from windlass.cli.safe_text import exact

    click.echo(f"windlass: {exact(message)}", err=True)


def _have_streams() -> None:
    """A stream that was closed is an empty one: else the next file or socket would take its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _never_fail_to_print() -> None:
    """A character the terminal's encoding lacks is shown as an escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
