"""`windlass sessions`: the conversations of a workspace."""

from datetime import datetime
from pathlib import Path

import click

from windlass.cli.choosing import choose
from windlass.cli.connection import opened, run_async
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.client import Message, Session, ToolResult, WorkspaceHandle


@click.group(cls=ListingGroup)
def sessions() -> None:
    """List, show, rename and delete the sessions of a workspace.

    \b
    Examples:
      windlass sessions
      windlass sessions show ses_9f86
      windlass sessions rename ses_9f86 "The parser rewrite"
    """


@sessions.command("list")
@directory_option
@json_option
@server_options
def list_sessions(directory: Path, as_json: bool, server: ServerOptions) -> None:
    """List sessions, newest first.

    \b
    Example:
      windlass sessions list -C ~/project --json
    """

    async def work() -> list[Session]:
        async with opened(server, directory) as workspace:
            return await workspace.sessions()

    found = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(found)
    elif not found:
        terminal.status("No sessions here yet. `windlass run PROMPT` starts one.")
    else:
        terminal.table(["ID", "UPDATED", "MESSAGES", "STATE", "TITLE"], [_row(session) for session in found])


def _row(session: Session) -> list[str]:
    updated = datetime.fromtimestamp(session.updated_at).strftime("%Y-%m-%d %H:%M")
    state = "busy" if session.is_busy else "idle"
    return [exact(session.id), updated, str(session.message_count), state, shortened(exact(session.title), 60)]


@sessions.command("show")
@click.argument("session_id", metavar="ID")
@directory_option
@json_option
@server_options
def show_session(session_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Print a whole session. The beginning of an ID is enough.

    \b
    Example:
      windlass sessions show ses_9f86 | less
    """

    async def work() -> list[Message]:
        async with opened(server, directory) as workspace:
            return await workspace.messages(await whole_id(workspace, session_id))

    messages = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(messages)
        return
    for message in messages:
        terminal.heading(message.role)
        for line in _content(message):
            terminal.line(line)


def _content(message: Message) -> list[str]:
    lines = [prose(message.text)] if message.text else []
    lines += [f"* {exact(call.name)} {exact(call.input)}" for call in message.tool_calls]
    lines += [prose(part.data.content) for part in message.parts if isinstance(part, ToolResult)]
    finish = message.finish
    if finish is not None and finish.reason not in ("end_turn", "tool_use"):
        lines.append(f"({finish.reason}{': ' + exact(finish.message) if finish.message else ''})")
    return lines


@sessions.command("rename")
@click.argument("session_id", metavar="ID")
@click.argument("title")
@directory_option
@server_options
def rename_session(session_id: str, title: str, directory: Path, server: ServerOptions) -> None:
    """Give a session another title.

    \b
    Example:
      windlass sessions rename ses_9f86 "The parser rewrite"
    """

    async def work() -> None:
        async with opened(server, directory) as workspace:
            await workspace.rename(await whole_id(workspace, session_id), title)

    run_async(work())


@sessions.command("delete")
@click.argument("session_id", metavar="ID")
@directory_option
@server_options
def delete_session(session_id: str, directory: Path, server: ServerOptions) -> None:
    """Delete a session and everything in it, for everyone. Its runs are cancelled first.

    \b
    Example:
      windlass sessions delete ses_9f86
    """

    async def work() -> str:
        async with opened(server, directory) as workspace:
            whole = await whole_id(workspace, session_id)
            await workspace.delete_session(whole)
            return whole

    Terminal().status(f"Deleted {exact(run_async(work()))}.")


async def whole_id(workspace: WorkspaceHandle, session_id: str) -> str:
    return choose(session_id, [session.id for session in await workspace.sessions()], "session")
