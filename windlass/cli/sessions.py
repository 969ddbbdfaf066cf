"""`windlass sessions`: the conversations of a workspace."""

from pathlib import Path

import click

from windlass.cli.choosing import choose, whole_id
from windlass.cli.completion import complete_runs, complete_sessions
from windlass.cli.connection import opened, run_async
from windlass.cli.export import export_session, search_sessions
from windlass.cli.options import ListingGroup, ServerOptions, directory_option, json_option, server_options
from windlass.cli.progress import working
from windlass.cli.runs import every_run
from windlass.cli.safe_text import exact, prose, shortened
from windlass.cli.terminal import Terminal
from windlass.cli.times import local_minute
from windlass.cli.used import used
from windlass.client import (
    Message,
    NotFound,
    Session,
    ShellCommand,
    Summarized,
    ToolResult,
    Undone,
    WorkspaceHandle,
)


@click.group(cls=ListingGroup)
def sessions() -> None:
    """List, show, search, export, rename and delete the sessions of a workspace; undo, plan and sum up.

    \b
    Examples:
      windlass sessions
      windlass sessions show ses_9f86
      windlass sessions search "connection pool"
      windlass sessions export ses_9f86 -o parser.md
    """


sessions.add_command(export_session)
sessions.add_command(search_sessions)


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
    state = "busy" if session.is_busy else "idle"
    updated = local_minute(session.updated_at)
    return [exact(session.id), updated, str(session.message_count), state, shortened(exact(session.title), 60)]


@sessions.command("show")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
@directory_option
@json_option
@server_options
def show_session(session_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Print a whole session. The beginning of an ID is enough.

    \b
    Example:
      windlass sessions show ses_9f86 | less
    """

    async def work() -> tuple[Session, list[Message]]:
        async with opened(server, directory) as workspace:
            session = await workspace.session(await whole_id(workspace, session_id))
            return session, await workspace.messages(session.id)

    with working("Reading the session"):
        session, messages = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(messages)
        return
    for message in messages:
        terminal.heading(message.role)
        for line in _content(message):
            terminal.line(line)
    terminal.status(used(session.prompt_tokens, session.completion_tokens, session.cache_read_tokens, session.cost))


def _content(message: Message) -> list[str]:
    lines = [prose(message.text)] if message.text else []
    lines += [f"* {exact(call.name)} {exact(call.input)}" for call in message.tool_calls]
    lines += [prose(part.data.content) for part in message.parts if isinstance(part, ToolResult)]
    for part in message.parts:
        if isinstance(part, ShellCommand):
            lines += [prose(part.data.output.rstrip("\n")), f"[exit code {part.data.exit_code}]"]
    finish = message.finish
    if finish is not None and finish.reason not in ("end_turn", "tool_use"):
        lines.append(f"({finish.reason}{': ' + exact(finish.message) if finish.message else ''})")
    return lines


@sessions.command("rename")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
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
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
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

    with working("Ending its runs and deleting"):
        deleted = run_async(work())
    Terminal().status(f"Deleted {exact(deleted)}.")


@sessions.command("undo")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
@click.argument("run_id", metavar="[RUN]", default="", shell_complete=complete_runs)
@directory_option
@json_option
@server_options
def undo_run(session_id: str, run_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Put the files that a run wrote back to what they were before it: the newest run, or the one you name.

    Files that have changed since are left as they are, and said. Undo one run after the other, the newest first.

    \b
    Example:
      windlass sessions undo ses_9f86
    """

    async def work() -> Undone:
        async with opened(server, directory) as workspace:
            whole = await whole_id(workspace, session_id)
            runs = await _started_runs(workspace, whole)
            if not runs:
                raise NotFound("Nothing has run in this session yet.")
            return await workspace.undo(whole, choose(run_id, runs, "run") if run_id else runs[-1])

    with working("Putting files back"):
        undone = run_async(work())
    terminal = Terminal()
    if as_json:
        terminal.json(undone)
        return
    for path in undone.restored:
        terminal.line(f"Removed {exact(path)}, which was new" if path in undone.removed else f"Restored {exact(path)}")
    for file in undone.refused:
        terminal.status(f"Left as it is: {exact(file.path)}: {exact(file.reason)}", fg="yellow")
    if not undone.restored and not undone.refused:
        terminal.status("Nothing to undo: every file is as it was before that run.")


async def _started_runs(workspace: WorkspaceHandle, session_id: str) -> list[str]:
    """Ids, the oldest first. A run that never started wrote nothing."""
    return [run.id for run in await every_run(workspace, session_id) if run.started_at]


@sessions.command("plan")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
@click.argument("mode", type=click.Choice(["on", "off"]))
@directory_option
@server_options
def plan_session(session_id: str, mode: str, directory: Path, server: ServerOptions) -> None:
    """Plan mode: on, the session's runs may only read; off, later ones may act again.

    \b
    Example:
      windlass sessions plan ses_9f86 on
    """

    async def work() -> None:
        async with opened(server, directory) as workspace:
            await workspace.set_plan(await whole_id(workspace, session_id), mode == "on")

    run_async(work())
    Terminal().status(f"Plan mode is {mode}.")


@sessions.command("summarize")
@click.argument("session_id", metavar="ID", shell_complete=complete_sessions)
@directory_option
@json_option
@server_options
def summarize_session(session_id: str, directory: Path, as_json: bool, server: ServerOptions) -> None:
    """Sum a session up: the model is sent the summary from then on, and no longer what was before it.

    It waits until what runs in the session has ended, also for people who have not answered yet.

    \b
    Example:
      windlass sessions summarize ses_9f86
    """

    async def work() -> Summarized:
        async with opened(server, directory) as workspace:
            session = await workspace.session(await whole_id(workspace, session_id))
            if session.is_busy:
                progress.what = "Waiting for what runs in the session, then summing up"
            return await workspace.summarize(session.id)

    with working("Summing up") as progress:
        summarized = run_async(work())
    if as_json:
        Terminal().json(summarized)
    else:
        Terminal().line(prose(summarized.summary))
