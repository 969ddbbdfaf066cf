"""What `windlass sessions export` collects: a session with everything in it, as a value that can be read again."""

import msgspec

from windlass.cli.progress import Progress
from windlass.cli.runs import every_run
from windlass.client import FileVersion, Message, NotFound, Run, Session, WorkspaceHandle

EXPORT_VERSION = 1


class SessionExport(msgspec.Struct):
    """One session. `version` is that of this shape: fields are only ever added. `agents`: the sub-agents' sessions.

    Read an export again with `msgspec.json.decode(text, type=SessionExport)`.
    """

    version: int
    session: Session
    messages: list[Message]
    runs: list[Run]
    files: list[FileVersion] = []
    agents: list["SessionExport"] = []


async def collect(workspace: WorkspaceHandle, session_id: str, *, agents: bool, progress: Progress) -> SessionExport:
    """Everything of a session, and with `agents` of those it started, and theirs."""
    session = await workspace.session(session_id)
    progress.what = f"Collecting {session.message_count:,} messages"
    export = SessionExport(
        version=EXPORT_VERSION,
        session=session,
        messages=await workspace.messages(session_id),
        runs=await every_run(workspace, session_id),
        files=await workspace.file_history(session_id),
    )
    if agents:
        for child in await workspace.sessions(parent=session_id):
            try:
                export.agents.append(await collect(workspace, child.id, agents=True, progress=progress))
            except NotFound:
                continue  # deleted since it was listed
    return export
