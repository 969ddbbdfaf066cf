"""What a git that was killed left of a worktree where git itself can no longer take it away."""

import os
import re
import shutil
import time

from windlass import limits

# Git makes each of these and then writes it. With no HEAD it calls the worktree none and will not remove it; with an
# empty `commondir` it lists no worktree of the repository at all, the user's own among them.
_NEEDED = ("gitdir", "HEAD", "commondir")
_SESSION_ID = re.compile(r"ses_[0-9a-f]{32}")


def clear(repository: str, directory: str, session_id: str) -> None:
    """Take away half an entry of this agent's worktree below `directory`, and of others' if nobody can be at it now.

    Git checks nothing out before its entry is whole, and takes the files away before the entry. So one that is not
    whole has no work of an agent's beside it; where there is some nevertheless, nothing is touched.
    """
    for own in _entries(repository):
        name = os.path.basename(own)
        root = f"{directory}/{name}"
        if not _is_whole(own) and (name == session_id or _is_old(own)) and _holds_nothing(root):
            _unlink(f"{root}/.git")
            shutil.rmtree(own, ignore_errors=True)  # what cannot be removed is met again by git, which says why


def _entries(repository: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(f"{repository}/worktrees") if _SESSION_ID.fullmatch(entry.name)]
    except FileNotFoundError:
        return []  # there never was a worktree


def _is_whole(own: str) -> bool:
    try:
        return all(os.lstat(f"{own}/{name}").st_size > 0 for name in _NEEDED)
    except OSError:
        return False


def _is_old(own: str) -> bool:
    """Longer ago than any git of ours may work on it."""
    try:
        return time.time() - os.lstat(own).st_mtime > limits.GIT_SECONDS
    except OSError:
        return False  # just removed, by whoever it belongs to


def _holds_nothing(root: str) -> bool:
    try:
        return set(os.listdir(root)) <= {".git"} and not os.path.isdir(f"{root}/.git")
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
