"""Where a run works: the workspace's directory, or a worktree of its own for a sub-agent whose role says so."""

from typing import TYPE_CHECKING

import structlog

from windlass.config import Config
from windlass.core.lane import Entry
from windlass.engine.context import Worktree

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

logger = structlog.get_logger("windlass.place")


class Place:
    """The directory of one run, and the family it stands in. Opened before its executor, closed before its end."""

    def __init__(self, workspace: "Workspace", entry: Entry, config: Config) -> None:
        self._workspace = workspace
        self._entry = entry
        self._config = config
        self._worktree: Worktree | None = None
        line = workspace.sessions.lineage(entry.run.session_id)
        self.root_session_id = line[0].id if line else entry.run.session_id
        self.roles = tuple(session.role for session in line if session.parent_session_id)

    async def open(self) -> str:
        """The directory to work in. A worktree's branch is told before anything is done on it."""
        role = self._config.role(self.roles[-1]) if self.roles else None
        worktrees = self._workspace.context.worktrees
        if role is None or not role.worktree or worktrees is None:
            return self._workspace.path
        self._worktree = await worktrees.open(self._workspace.path, self._entry.run.session_id)
        if self._worktree is None:
            return self._workspace.path  # no repository: there is nothing to branch from
        self._tell(self._worktree.branch)
        return self._worktree.path

    async def close(self) -> None:
        """What was done is on the branch; a branch on which nothing was done is gone."""
        worktrees, worktree = self._workspace.context.worktrees, self._worktree
        if worktree is None or worktrees is None:
            return
        self._worktree = None
        try:
            settled = await worktrees.settle(worktree)
        except OSError as error:
            # The directory stays as it is, so nothing is lost; the next run of this agent finds it.
            logger.warning("worktree not settled", session=self._entry.run.session_id, reason=str(error))
            return
        self._tell(settled.branch)

    def _tell(self, branch: str) -> None:
        sessions, entry = self._workspace.sessions, self._entry
        session = sessions.ending(entry.run.session_id)
        if session is not None and session.branch != branch and not self._workspace.log.closed:
            self._workspace.log.append(sessions.change(session.id, entry.by, branch=branch))
