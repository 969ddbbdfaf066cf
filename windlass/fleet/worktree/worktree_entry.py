"""What git knows of one worktree, and taking it away."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass

from windlass.fleet.worktree.git import Git

SESSION_ID = re.compile(r"ses_[0-9a-f]{32}")  # git's own directory for a worktree has its agent's id as its name
LOCK_DRAFT = "locked.windlass"  # beside git's files, for a moment

# Why a worktree is locked while it is being made or removed. Whoever finds one of these knows that it was not finished:
# its files are not what the agent left, and committing them would commit the loss of half of them.
_MAKING = "added with --lock"
_MAKING_INSIDE_GIT = "initializing"
_REMOVING = "its work is committed, it is being removed"
_UNFINISHED = {_MAKING, _MAKING_INSIDE_GIT, _REMOVING}


@dataclass(frozen=True, slots=True)
class Entry:
    """`lock` is the reason for which it is locked, `has_git_file` whether its directory leads to the repository."""

    lock: str
    is_missing: bool
    has_git_file: bool

    @property
    def is_unfinished(self) -> bool:
        """There is nothing of an agent's in it: it was not yet made, or is already committed, or is gone."""
        return self.is_missing or self.lock in _UNFINISHED


async def read_entry(repository: Git, root: str) -> Entry | None:
    """The worktree at `root`, or None if git knows of none there."""
    return _find(await repository.read("worktree", "list", "--porcelain"), root)


def _find(listed: str, root: str) -> Entry | None:
    """A block of lines for each worktree, its path first."""
    for block in listed.split("\n\n"):
        lines = block.split("\n")
        if lines[0] == f"worktree {root}":
            lock = next((line.removeprefix("locked ") for line in lines if line.startswith("locked ")), "")
            return Entry(lock, is_missing=not os.path.isdir(root), has_git_file=_has_git_file(root))
    return None


def _has_git_file(root: str) -> bool:
    """Git makes the file and then writes it: killed in between it leaves an empty one, which leads nowhere."""
    try:
        return os.lstat(f"{root}/.git").st_size > 0
    except OSError:
        return False


async def is_checked_out(repository: Git, branch: str) -> bool:
    """Whether the branch is what some worktree is on, the user's own among them."""
    listed = await repository.read("worktree", "list", "--porcelain")
    return f"branch refs/heads/{branch}" in listed.split("\n")


def mark_committed(own_directory: str) -> bool:
    """Lock it, as one that has nothing of an agent's in it; False if it is locked already, by the user.

    `git worktree lock` makes the file and then writes it: killed in between it leaves a lock without a reason, which
    looks like a user's, and the worktree would stay for ever. So the file comes whole or not at all.
    """
    directory = os.open(own_directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if "locked" in os.listdir(directory):
            return False
        with suppress(FileNotFoundError):
            os.unlink(LOCK_DRAFT, dir_fd=directory)  # of a server that was killed
        # An agent can write here: a link that it made would have us write into what it may not.
        file = os.open(LOCK_DRAFT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=directory)
        try:
            os.write(file, f"{_REMOVING}\n".encode())
            os.fsync(file)  # or the machine's end, too, could leave the name without the words
        finally:
            os.close(file)
        os.replace(LOCK_DRAFT, "locked", src_dir_fd=directory, dst_dir_fd=directory)
        return True
    finally:
        os.close(directory)


async def remove(repository: Git, root: str, entry: Entry) -> None:
    """Remove the directory and git's knowledge of it. It is an unfinished one, and stays so if this is interrupted."""
    if not entry.is_missing and not entry.has_git_file:
        await repository.do("worktree", "repair")  # removing was interrupted after this file, and git wants it
    # Not `prune`: it would also take what another agent's `worktree add` has only begun.
    await repository.do("worktree", "remove", "--force", "--force", root)
