"""What a git that was killed left of a worktree where git itself can no longer take it away."""

import os
import shutil
import time
from contextlib import suppress

from windlass import limits
from windlass.fleet.worktree.worktree_entry import LOCK_DRAFT, SESSION_ID

# Git makes each of these and then writes it. With no HEAD it calls the worktree none and will not remove it; with an
# empty `commondir` it lists no worktree of the repository at all, the user's own among them.
_NEEDED = ("gitdir", "HEAD", "commondir")
_OTHERS = {"ORIG_HEAD", "index", "locked", LOCK_DRAFT, "logs", "refs"}


def clear(repository: str, directory: str, session_id: str) -> None:
    """Take away half an entry of this agent's worktree below `directory`, and of others' if nobody can be at it now.

    Git checks nothing out before its entry is whole, and takes the files away before the entry. So one that is not
    whole has no work of an agent's beside it; where there is some nevertheless, nothing is touched.

    An agent may write in the repository, and not in what is ours. It could put a link where git keeps the entries, and
    have us remove through it what it cannot: so no link is followed, and what git does not put there is left alone.
    """
    try:
        entries = os.open(f"{repository}/worktrees", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return  # there never was a worktree, or it is nothing of git's
    try:
        for name in filter(SESSION_ID.fullmatch, os.listdir(entries)):
            root = f"{directory}/{name}"
            if _is_half(name, entries, may_be_new=name == session_id) and _holds_nothing(root):
                with suppress(FileNotFoundError):
                    os.unlink(f"{root}/.git")
                shutil.rmtree(name, ignore_errors=True, dir_fd=entries)  # what stays is met by git, which says why
    finally:
        os.close(entries)


def _is_half(name: str, entries: int, *, may_be_new: bool) -> bool:
    """Whether a git that is gone left half of it. At another agent's that is new, a git may be at work just now."""
    try:
        own = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=entries)
    except OSError:
        return False  # just removed, by whoever it belongs to
    try:
        is_old = time.time() - os.fstat(own).st_mtime > limits.GIT_SECONDS
        sizes = {part: os.stat(part, dir_fd=own, follow_symlinks=False).st_size for part in os.listdir(own)}
    except OSError:
        return False  # somebody is at it
    finally:
        os.close(own)
    is_whole = all(sizes.get(part, 0) > 0 for part in _NEEDED)
    is_gits = all(part in _NEEDED or part in _OTHERS or part.endswith(".lock") for part in sizes)
    return not is_whole and is_gits and (is_old or may_be_new)


def _holds_nothing(root: str) -> bool:
    try:
        return set(os.listdir(root)) <= {".git"} and not os.path.isdir(f"{root}/.git")
    except FileNotFoundError:
        return True
    except OSError:
        return False
