"""Where a run works: the workspace's directory, or a worktree of its own for a sub-agent whose role says so."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from windlass.config import Config, RoleConfig
from windlass.core.lane import Entry
from windlass.engine.context import Worktree

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

logger = structlog.get_logger("windlass.place")


class Place:
    """The directory of one run, and the family it stands in. Opened before its executor, closed before its end.

    `path` is where it works: at first its parent's directory (an agent of an agent in a worktree stays there), or the
    workspace's.
    """

    def __init__(self, workspace: "Workspace", entry: Entry, config: Config, path: str) -> None:
        self.path = path
        self._workspace = workspace
        self._entry = entry
        self._opening: asyncio.Task[Worktree | None] | None = None
        line = workspace.sessions.lineage(entry.run.session_id)
        self.root_session_id = line[0].id if line else entry.run.session_id
        self.roles = tuple(session.role for session in line if session.parent_session_id)
        self.role = (config.role(self.roles[-1]) if self.roles else None) or RoleConfig()

    async def open(self) -> str:
        """The directory to work in. A worktree's branch is told before anything is done on it."""
        worktrees = self._workspace.context.worktrees
        if not self.role.worktree or worktrees is None:
            return self.path
        # In a task of its own: a cancel in the middle must not leave a directory that nobody knows of.
        opening = worktrees.open(self.path, self._entry.run.session_id)
        self._opening = asyncio.ensure_future(opening)
        worktree = await asyncio.shield(self._opening)
        if worktree is not None:  # else there is no repository to branch from
            self.path = worktree.path
            self._tell(worktree.branch)
        return self.path

    async def close(self) -> None:
        """What was done is on the branch; a branch on which nothing was done is gone."""
        worktrees, opening = self._workspace.context.worktrees, self._opening
        if opening is None or worktrees is None:
            return
        self._opening = None
        try:
            worktree = await asyncio.shield(opening)  # cut short, it would leave a directory that nobody knows of
            settled = None if worktree is None else await worktrees.settle(worktree)
        except OSError as error:
            # The directory stays as it is, so nothing is lost; the next run of this agent finds it.
            logger.warning("worktree not settled", session=self._entry.run.session_id, reason=str(error))
            return
        if settled is not None:
            self._tell(settled.branch)

    def _tell(self, branch: str) -> None:
        sessions, entry = self._workspace.sessions, self._entry
        session = sessions.ending(entry.run.session_id)
        if session is not None and session.branch != branch and not self._workspace.log.closed:
            self._workspace.log.append(sessions.change(session.id, entry.by, branch=branch))
