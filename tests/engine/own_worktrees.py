"""Worktrees as a test decides: a path and a branch for each agent, and whatever it wants to happen at the end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from windlass.config import Config, RoleConfig

BUILDERS = Config(model="x/y", roles={"builder": RoleConfig(worktree=True)})


@dataclass(frozen=True)
class OwnWorktree:
    path: str
    branch: str


async def in_order() -> None:
    """Nothing goes wrong at the end."""


class OwnWorktrees:
    """`at_end` is what settling one does."""

    def __init__(self, at_end: Callable[[], Awaitable[None]] = in_order) -> None:
        self._at_end = at_end

    async def open(self, workspace_path: str, session_id: str) -> OwnWorktree:
        return OwnWorktree(f"/worktrees/{session_id}", f"windlass/{session_id}")

    async def settle(self, worktree: OwnWorktree) -> OwnWorktree:
        await self._at_end()
        return worktree
