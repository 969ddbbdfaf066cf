"""A directory and a branch of its own for an agent that writes, so that agents do not write over each other."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from windlass import limits
from windlass.fleet.worktree import remains
from windlass.fleet.worktree.agent_work import commit_all, holds_repositories, read_changes, read_commit
from windlass.fleet.worktree.git import Git, WorktreeError
from windlass.fleet.worktree.worktree_entry import (
    SESSION_ID,
    Entry,
    is_checked_out,
    mark_committed,
    read_entry,
    remove,
)
from windlass.wire.tools import Spawner

__all__ = ["Settled", "Worktree", "WorktreeError", "Worktrees"]


@dataclass(frozen=True, slots=True)
class Worktree:
    """`path` is where the agent works, `base` the commit its branch starts at, `repository` git's own directory."""

    path: str
    branch: str
    base: str
    repository: str


@dataclass(frozen=True, slots=True)
class Settled:
    """What an agent left: `branch` is "" when that is nothing.

    `changed_files` are at most WORKTREE_FILES names; `more_files` says that there are more. `left_at` is the directory
    if it had to stay: it holds what no commit of this repository can (a repository of its own, an unreadable file).
    """

    branch: str
    commits: int = 0
    changed_files: tuple[str, ...] = ()
    more_files: bool = False
    left_at: str = ""


class Worktrees:
    """Opens and settles the worktrees of agents. All are below `directory`, which is ours alone.

    While one of them is opened or settled nobody works in it, and nobody else opens or settles it; different ones
    may be handled at the same time, also by several processes. Cancel or kill it at any moment: the next `open` or
    `settle` of the same worktree repairs what that left. Nothing of the repository is executed (`git_settings.py`).
    """

    def __init__(self, spawner: Spawner, directory: Path, environment: dict[str, str]) -> None:
        self._git = Git(spawner, dict(environment))
        self._directory = Path(os.path.realpath(directory))  # git tells real paths, and we compare with them

    # -- open ---------------------------------------------------------------------------------------------------------

    async def open(self, workspace_path: str, session_id: str) -> Worktree | None:
        """A worktree on the branch `windlass/<session id>`; None if the workspace is in no git work tree with a commit.

        A new branch starts at the workspace's HEAD, also a detached one. What the user has not committed is not in it:
        taking it over would put it into the agent's commits. A branch that exists is checked out as it is, and a
        worktree that exists is taken as it is. Submodules are there, but empty. Raises WorktreeError.
        """
        root = self._root(session_id)
        workspace = await self._find(workspace_path)
        if workspace is None:
            return None
        branch = f"windlass/{session_id}"
        repository = self._git.at(workspace.repository, workspace.repository)
        await asyncio.to_thread(self._prepare, workspace.repository, branch)
        entry = await read_entry(repository, root)
        if entry is None or entry.is_unfinished:
            await self._make(repository, root, branch, workspace.head, entry)
        else:
            await self._checked(root, workspace.repository)
        path = await asyncio.to_thread(_subdirectory, root, workspace.prefix)
        base = await self._base(repository, branch, workspace.head)
        return Worktree(path, branch, base, workspace.repository)

    def _root(self, session_id: str) -> str:
        if SESSION_ID.fullmatch(session_id) is None:
            raise WorktreeError(f"{session_id[:100]!r} is not a session's id (ses_ and 32 hexadecimal digits)")
        return str(self._directory / session_id)

    def _prepare(self, repository: str, branch: str) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Left by a git that was killed. The branch is this agent's alone, so nobody holds it.
            _remove_files(f"{repository}/refs/heads/{branch}.lock")
            remains.clear(repository, str(self._directory), branch.removeprefix("windlass/"))
        except OSError as error:
            raise WorktreeError(f"{error.filename} cannot be written: {error.strerror}") from None

    async def _find(self, workspace: str) -> "_Workspace | None":
        git = self._git.at(workspace)
        answer = await git.look("rev-parse", "--is-inside-work-tree")
        if answer.exit_code != 0:
            said = (await git.attempt("rev-parse", "--is-inside-work-tree")).text.strip()
            if "not a git repository" in said or "cannot use bare repository" in said:
                return None
            # It may be one, and git will not touch it: another owner, a broken file. Its words say what to do.
            raise WorktreeError(f"git cannot use {workspace}: {said[: limits.GIT_SAID_CHARACTERS]}")
        head = await git.look("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if answer.text.strip() != "true" or head.exit_code != 0:
            return None
        told = await git.read("rev-parse", "--path-format=absolute", "--show-prefix", "--git-common-dir")
        lines = told.split("\n")
        if len(lines) != 2:
            raise WorktreeError(f"git does not say where {workspace} is. It must be 2.31 or newer.")
        return _Workspace(repository=lines[1], prefix=lines[0], head=head.text.strip())

    async def _make(self, repository: Git, root: str, branch: str, head: str, entry: Entry | None) -> None:
        if entry is not None:
            await remove(repository, root, entry)
        elif not await asyncio.to_thread(_is_free, root):
            raise WorktreeError(f"{root} is in the way: no worktree of {repository.directory}. Move it elsewhere.")
        if not await read_commit(repository, f"refs/heads/{branch}"):
            # Not by `worktree add -b`: when that meets another git it has made the branch and not the worktree, and the
            # same command, tried again, is refused because of the branch.
            await repository.do("update-ref", "-m", "branch: for an agent", f"refs/heads/{branch}", head, "")
        # Without files at first: only in the worktree is it known which filters apply there.
        await repository.do("worktree", "add", "--quiet", "--no-checkout", "--lock", root, branch)
        inside = await self._git.at(root).without_its_programs()
        await inside.do("reset", "--hard", "--quiet", "--no-recurse-submodules")
        await repository.do("worktree", "unlock", root)

    async def _base(self, repository: Git, branch: str, head: str) -> str:
        """Where the branch left HEAD. After somebody merged it that is its tip: only what is new counts then."""
        answer = await repository.look("merge-base", head, f"refs/heads/{branch}")
        return answer.text.strip() if answer.exit_code == 0 else head

    # -- settle -------------------------------------------------------------------------------------------------------

    async def settle(self, worktree: Worktree) -> Settled:
        """Commit what is not committed, remove the directory, and say what is on the branch. Ignored files are lost.

        A branch with no commit beyond its base is deleted. If the agent went to another branch, its work is brought to
        the one we gave it. Safe to call again, after an error and after success. Raises WorktreeError; then the
        directory is still there.
        """
        session_id = worktree.branch.removeprefix("windlass/")
        root = self._root(session_id)
        repository = self._git.at(worktree.repository, worktree.repository)
        await asyncio.to_thread(self._prepare, worktree.repository, worktree.branch)
        entry = await read_entry(repository, root)
        may_go = True
        if entry is not None and not entry.is_unfinished:
            inside, own_directory = await self._checked(root, worktree.repository)
            may_go = await commit_all(inside, worktree.branch, f"Work of agent {session_id}")
            changes = await read_changes(repository, worktree.base, worktree.branch)
            may_go = may_go and not await asyncio.to_thread(holds_repositories, root, own_directory, changes)
            may_go = may_go and await asyncio.to_thread(_try_to_mark, own_directory)
        if entry is not None and may_go:
            may_go = await self._try_to_remove(repository, root, entry)
        return await _report(repository, worktree, left_at="" if may_go else root)

    async def _checked(self, root: str, repository: str) -> tuple[Git, str]:
        """git in the worktree, and its directory for it. Checked, since an agent can write into its `.git` file."""
        inside = self._git.at(root)
        if not await _belongs(inside, root, repository):
            await self._git.at(repository, repository).do("worktree", "repair")
            if not await _belongs(inside, root, repository):
                raise WorktreeError(
                    f"{root} is no longer a worktree of {repository}. Keep what you need, and remove it."
                )
        own_directory = await inside.read("rev-parse", "--absolute-git-dir")
        # Left by a git that was killed. Nobody works here now, so nobody holds them.
        await asyncio.to_thread(_remove_files, f"{own_directory}/index.lock", f"{own_directory}/HEAD.lock")
        return await inside.without_its_programs(), own_directory

    async def _try_to_remove(self, repository: Git, root: str, entry: Entry) -> bool:
        try:
            await remove(repository, root, entry)
        except WorktreeError:
            return False  # a directory without the right to write: it stays, and is told
        return True


@dataclass(frozen=True, slots=True)
class _Workspace:
    repository: str
    prefix: str  # of the workspace below the top of the repository, "" or with a slash at its end
    head: str


async def _belongs(inside: Git, root: str, repository: str) -> bool:
    """Whether git, looking for a repository from there, finds this worktree and not one further up or elsewhere."""
    told = await inside.look("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
    return told.text == f"{root}\n{repository}\n"


async def _report(repository: Git, worktree: Worktree, left_at: str) -> Settled:
    tip = await read_commit(repository, f"refs/heads/{worktree.branch}")
    if not tip:
        return Settled("", left_at=left_at)
    commits = int(await repository.read("rev-list", "--count", f"{worktree.base}..{tip}"))
    if not commits and not left_at:
        if not await is_checked_out(repository, worktree.branch):
            # With the tip we saw: should somebody have committed to it just now, it stays.
            await repository.do("update-ref", "-d", f"refs/heads/{worktree.branch}", tip)
        return Settled("")
    changes = await read_changes(repository, worktree.base, worktree.branch)
    names = changes.files[: limits.WORKTREE_FILES]
    return Settled(worktree.branch, commits, names, changes.are_more or len(changes.files) > len(names), left_at)


def _try_to_mark(own_directory: str) -> bool:
    try:
        return mark_committed(own_directory)
    except OSError:
        return False  # a full disk, a repository without the right to write: it stays, and is told


def _remove_files(*paths: str) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)


def _is_free(root: str) -> bool:
    return not os.path.lexists(root) or (os.path.isdir(root) and not os.path.islink(root) and not os.listdir(root))


def _subdirectory(root: str, prefix: str) -> str:
    """The workspace's place in the worktree, made if nothing of it is committed."""
    path = os.path.join(root, prefix).rstrip("/")
    if os.path.realpath(path) != path:
        raise WorktreeError(
            f"{prefix} is a symlink in the last commit, and would lead out of the worktree. Commit first."
        )
    Path(path).mkdir(parents=True, exist_ok=True)
    return path
