"""What clients read of a workspace: from the view, with the live text of unfinished messages laid over (B19)."""

import os

import msgspec

from windlass.engine import timeline as times
from windlass.engine.workspace import Workspace
from windlass.errors import NotFound
from windlass.journal import file_history as history
from windlass.journal import past, view
from windlass.wire.runs import Run
from windlass.wire.sessions import Session
from windlass.wire.timeline import Timeline

_decode_session = msgspec.json.Decoder(Session).decode
_decode_run = msgspec.json.Decoder(Run).decode


async def session(workspace: Workspace, session_id: str) -> Session:
    body = await workspace.read(view.session, workspace.id, session_id)
    if body is None:
        raise NotFound("There is no such session in this workspace.")
    return _shown(workspace, body)


async def sessions(workspace: Workspace, parent: str) -> list[Session]:
    """The children of a session ("" for top-level ones), the one that changed last first."""
    return [_shown(workspace, body) for body in await workspace.read(view.sessions, workspace.id, parent)]


def _shown(workspace: Workspace, body: bytes) -> Session:
    """A session as it is on disk, with who looks at it now."""
    found = _decode_session(body)
    found.attached_clients = workspace.claims.attached_clients(found.id)
    return found


async def messages(workspace: Workspace, session_id: str, after: str = "", limit: int = -1) -> list[bytes]:
    """Encoded messages, oldest first, each with its text so far."""
    await session(workspace, session_id)
    rows = await workspace.read(view.messages, workspace.id, session_id, after, limit)
    if rows is None:
        raise NotFound("There is no message with the id given as after in this session.")
    return [await _live(workspace, row) for row in rows]


async def _live(workspace: Workspace, row: view.MessageRow) -> bytes:
    """What streams were shown of a message; one that ended since it was read is read again."""
    while row.unfinished:
        live = workspace.log.live.get(row.id)
        if live is not None:
            return msgspec.json.encode(live.published())
        again = await workspace.read(view.message, workspace.id, row.id)
        if again is None or again == row:
            break
        row = again
    return row.body


async def user_messages(workspace: Workspace, session_id: str = "") -> list[bytes]:
    """What people said, newest first: in one session, or in all."""
    if session_id:
        await session(workspace, session_id)
    return await workspace.read(view.user_messages, workspace.id, session_id)


async def file_history(workspace: Workspace, session_id: str) -> list[bytes]:
    """Encoded versions of the files a session wrote, in the order in which they came to be."""
    await session(workspace, session_id)
    return await workspace.read(history.history, workspace.id, session_id)


async def files_read(workspace: Workspace, session_id: str) -> list[str]:
    """Absolute paths of the files whose content a session's model was shown, sorted."""
    await session(workspace, session_id)
    paths = await workspace.read(history.files_read, workspace.id, session_id)
    return sorted({os.path.join(workspace.path, path) for path in paths})


async def runs(workspace: Workspace, session_id: str, state: str, after: str, limit: int) -> list[bytes]:
    """Encoded runs in the order they were accepted."""
    bodies = await workspace.read(view.runs, workspace.id, session_id, state, after, limit)
    if bodies is None:
        raise NotFound("There is no run with the id given as after in this workspace.")
    return bodies


async def timeline(workspace: Workspace, run_id: str) -> Timeline:
    """What a run spent its time on, so far."""
    run = await workspace.run(run_id)
    facts, all_there = await workspace.read(past.run_facts, workspace.id, run.session_id, run_id, times.decode)
    # In a thread: a very long run has tens of thousands of facts.
    made: Timeline = await workspace.context.in_thread(times.timeline_of, run, facts, all_there)
    return made


def queued(workspace: Workspace, session_id: str) -> list[Run]:
    """What waits on a session and will run, as everyone was told."""
    open_runs = [_decode_run(body) for body in workspace.log.runs.values()]
    waiting = [run for run in open_runs if run.session_id == session_id and run.state in ("accepted", "queued")]
    return [run for run in waiting if not run.cancel_requested]
