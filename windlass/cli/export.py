"""`windlass sessions export` and `search`: a conversation as a file, and where something was said."""

import contextlib
import os
import secrets
import stat
import sys
from pathlib import Path

import click
import msgspec

from windlass.cli.choosing import whole_id
from windlass.cli.completion import complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.exported import SessionExport, collect
from windlass.cli.options import ServerOptions, directory_option, json_option, server_options
from windlass.cli.progress import working
from windlass.cli.safe_text import exact, prose
from windlass.cli.terminal import Terminal
from windlass.cli.times import local_minute
from windlass.wire.http import SearchHit


@click.command("export")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
@click.option("--format", "format", type=click.Choice(["markdown", "json"]), help="[default: json for *.json]")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it into this file.")
@click.option("--agents", is_flag=True, help="With the sub-agents it started, and theirs.")
@directory_option
@server_options
def export_session(
    session_id: str, format: str | None, output: Path | None, agents: bool, directory: Path, server: ServerOptions
) -> None:
    """Write a whole session as Markdown for people, or as JSON with everything in it.

    \b
    Examples:
      windlass sessions export ses_9f86 -o parser.md
      windlass sessions export ses_9f86 --agents --format json | jq .messages
    """

    async def work() -> SessionExport:
        async with opened(server, directory) as workspace:
            whole = await whole_id(workspace, session_id)
            return await collect(workspace, whole, agents=agents, progress=progress)

    as_json = format == "json" or (format is None and output is not None and output.suffix == ".json")
    with working("Exporting") as progress:
        export = run_async(work())
        progress.what = "Writing"
        text = _json(export) if as_json else _markdown(export)
        if output is not None:
            _write(output, text)
    if output is None:
        # A terminal obeys what it is shown; a file or a pipe gets what was said, to the letter.
        Terminal().text(prose(text) if sys.stdout.isatty() else text)
    else:
        Terminal().status(f"Wrote {exact(str(output))}.")


def _json(export: SessionExport) -> str:
    return msgspec.json.format(msgspec.json.encode(export), indent=1).decode() + "\n"


def _markdown(export: SessionExport) -> str:
    from windlass.cli.markdown import as_markdown

    return as_markdown(export)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and for its owner alone: conversations hold what people would not show around.

    A device, a pipe and /dev/stdout are written to: a file in their place would be the end of them.
    """
    if _is_stream(path):
        _write_into(path, text)
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


def _is_stream(path: Path) -> bool:
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False  # a file that is to be
    return not is_file or (path.is_symlink() and path.absolute().parts[1] in ("dev", "proc"))


def _write_into(path: Path, text: str) -> None:
    try:
        # Non-blocking at first: a pipe that nobody reads would hold us up for ever.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            os.set_blocking(descriptor, True)
            stream.write(text)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


@click.command("search")
@click.argument("text")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@directory_option
@json_option
@server_options
def search_sessions(text: str, limit: int, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Find where something was said, in any session of the workspace: prompts, answers, tools and titles.

    \b
    Examples:
      windlass sessions search "connection pool"
      windlass sessions search TODO --json
    """

    async def work() -> list[SearchHit]:
        async with opened(server, directory) as workspace:
            return await workspace.search(text, limit)

    with working("Searching"):
        hits = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(hits)
        return
    for hit in hits:
        terminal.heading(f"{exact(hit.session_id)}  {local_minute(hit.created_at)}  {exact(hit.session_title)}")
        terminal.line(f"  {exact(hit.role) or 'title'}: {exact(hit.excerpt)}")
    if not hits:
        terminal.status("Nothing found.")
