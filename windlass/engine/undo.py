"""Undo: the files that a run wrote are put back to what they were before it, each only if nobody touched it since.

A run's changes of one file form a chain: what it was, and what it became, by their digests. A chain with a gap (someone
else wrote in between) is refused, as is a file that is not what the run left. So nothing of anybody's work is lost, and
runs can be undone one after the other, the newest first, down to the start.
"""

from typing import TYPE_CHECKING

import msgspec

from windlass import limits
from windlass.engine.context import Root
from windlass.engine.file_versions import ABSENT, Content, digest
from windlass.errors import Invalid, NotFound, Unavailable, WindlassError
from windlass.journal import file_history, view
from windlass.wire.http import NotRestored, Undone
from windlass.wire.permissions import By
from windlass.wire.sessions import FilePrivate, FileVersion
from windlass.wire.tools import ToolError

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

_decode_version = msgspec.json.Decoder(FileVersion).decode
_UNKNOWN = "What it was before the run is not known."
_NOT_KEPT = "What it was before the run was not kept: the session has kept as much of its files as it may."
_BETWEEN = "Someone else changed it while the run was going on. Undo would lose that."
_SINCE = "It has changed since the run. Undo would lose that; undo later runs first, or change it by hand."
_TOO_MANY = f"The run wrote more than {limits.UNDO_FILES} files. Put this one back by hand, or with git."


class Chain(msgspec.Struct, frozen=True):
    """All that a run and its agents did to one file, by digests. `session` is whose versions tell what it was."""

    path: str
    session: str
    before: str
    after: str
    is_whole: bool


def chains(changes: list[file_history.Change]) -> list[Chain]:
    """The changes of each file, joined: `is_whole` when each begins with what the one before it left."""
    found: dict[str, Chain] = {}
    for change in changes:
        earlier = found.get(change.path)
        if earlier is None:
            found[change.path] = Chain(change.path, change.session, change.before, change.digest, True)
            continue
        whole = earlier.is_whole and earlier.after == change.before
        found[change.path] = msgspec.structs.replace(earlier, after=change.digest, is_whole=whole)
    return list(found.values())


async def undo(workspace: "Workspace", session_id: str, run_id: str, by: By) -> Undone:
    """Put back what a run of this session wrote, and record it. Raises NotFound, Invalid for a run that is not over,
    Conflict while the session is busy: nothing starts on it until the files are as they were."""
    try:
        runs = await _runs(workspace, session_id, run_id)
        held = await _sessions(workspace, session_id, runs)
        workspace.sessions.get(session_id)  # it may have been deleted while we read, or its workspace closed
        workspace.check_accepting()
        workspace.hold(held)
    except WindlassError:
        await workspace.log.durable(workspace.log.head)  # what it is refused for must be on disk
        raise
    return await workspace.see_through(_undo(workspace, session_id, runs, held, by), f"undo {run_id}")


async def _runs(workspace: "Workspace", session_id: str, run_id: str) -> list[str]:
    """The run, and those of its agents. All of them are over when it is."""
    workspace.sessions.get(session_id)
    workspace.check_accepting()
    run = await workspace.run(run_id)
    if run.session_id != session_id:
        raise NotFound("There is no such run in this session.")
    if not run.is_terminal:
        raise Invalid(f"run_id is a run that is not over: it is {run.state}. Cancel it or wait for its end first.")
    workspace.sessions.get(session_id)  # it may have been deleted while we read
    below = [session.id for session in workspace.sessions.family(session_id) if session.id != session_id]
    return await workspace.read(file_history.runs_below, workspace.id, run_id, below)


async def _sessions(workspace: "Workspace", session_id: str, runs: list[str]) -> list[str]:
    found = [await workspace.read(view.run, workspace.id, run) for run in runs[1:]]
    below = {msgspec.json.decode(row[0])["session_id"] for row in found if row is not None}
    return [session_id, *sorted(below)]


async def _undo(workspace: "Workspace", session_id: str, runs: list[str], held: list[str], by: By) -> Undone:
    try:
        changes = await workspace.read(file_history.changes, workspace.id, runs)
        root = await _open(workspace)
        try:
            return await _put_back(workspace, root, session_id, runs[0], chains(changes), by)
        finally:
            await workspace.context.in_thread(root.close)
    finally:
        workspace.release(held)


async def _open(workspace: "Workspace") -> Root:
    opening = workspace.context.open_root
    if opening is None:
        raise Unavailable("This server writes no files of its own.")
    try:
        root: Root = await workspace.context.in_thread(opening, workspace.path)
    except OSError as error:
        raise Unavailable(f"The workspace's directory cannot be opened: {error.strerror}.") from None
    return root


async def _put_back(
    workspace: "Workspace", root: Root, session_id: str, run_id: str, done: list[Chain], by: By
) -> Undone:
    answer = Undone([], [])
    for number, chain in enumerate(done):
        if chain.session != session_id and _is_outside(root, chain.path):
            continue  # an agent in a worktree of its own: what it did is on its branch
        try:
            if number >= limits.UNDO_FILES:
                raise ToolError(_TOO_MANY)
            content = await _before(workspace, chain)
            restored = await workspace.context.in_thread(_restore, root, chain, content)
        except ToolError as error:
            answer.refused.append(NotRestored(chain.path, str(error)))
            continue
        if restored:
            # Each on its own: if the server dies in between, as little as possible was done and not told.
            digests = FilePrivate(chain.before, chain.after)
            fact = workspace.file_versions.undone(session_id, run_id, by, chain.path, content, digests)
            await workspace.log.durable(workspace.log.append([fact]))
            answer.restored.append(chain.path)
            if chain.before == ABSENT:
                answer.removed.append(chain.path)
    return answer


def _is_outside(root: Root, path: str) -> bool:
    try:
        root.relative(path)
    except ToolError:
        return True
    return False


async def _before(workspace: "Workspace", chain: Chain) -> Content:
    """What the file was before the run; raises ToolError when that cannot be told, or must not be put back."""
    if not chain.before:
        raise ToolError(_UNKNOWN)
    if not chain.is_whole:
        raise ToolError(_BETWEEN)
    if chain.before == ABSENT:
        return Content(None)
    body = await workspace.read(file_history.version_with, workspace.id, chain.session, chain.path, chain.before)
    if body is None:
        raise ToolError(_UNKNOWN)
    version = _decode_version(body)
    if version.omitted:
        raise ToolError(_NOT_KEPT)
    return Content(version.content, version.encoding)


def _restore(root: Root, chain: Chain, was: Content) -> bool:
    """Write the file as it was; False when it already is. Raises ToolError."""
    try:
        content = was.bytes
    except ValueError:
        raise ToolError(_UNKNOWN) from None  # what a run told of as base64 and is none
    inside = root.relative(chain.path)
    now = root.read_if_exists(inside, limits.FILE_READ_BYTES)
    if now == content:
        return False
    if digest(now) != chain.after:
        raise ToolError(_SINCE)
    root.replace_bytes(inside, now, content)
    return True
