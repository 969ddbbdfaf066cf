"""What an agent did in its worktree: committed on its branch, and read back from there."""

import os
from dataclasses import dataclass

from windlass.fleet.worktree.git import Git

_GITLINK = "160000"  # the mode of an entry that is a repository of its own
_SOME_WERE_LEFT_OUT = 1  # how `git add --ignore-errors` ends when it could not take all; a failure is 128, a kill -9


@dataclass(frozen=True, slots=True)
class Changes:
    """`files` differ from the base; `repositories` are those of them that are repositories of their own."""

    files: tuple[str, ...]
    repositories: tuple[str, ...]
    are_more: bool  # than could be read


async def commit_all(inside: Git, branch: str, message: str) -> bool:
    """Bring everything in the worktree to the branch. False if something could not be taken in.

    The branch moves once, at the end: a kill before that leaves it as it was, and the files too.
    """
    # An empty repository inside, or a file nobody may read, must not keep the rest from being committed.
    added = await inside.attempt("add", "--all", "--ignore-errors", ".")
    if added.exit_code not in (0, _SOME_WERE_LEFT_OUT):
        raise inside.failure("add", added)
    tree = await inside.read("write-tree")
    reference = f"refs/heads/{branch}"
    tip, head = await read_commit(inside, reference), await read_commit(inside, "HEAD")
    parents = _parents(tip, head, await _is_ancestor(inside, tip, head))
    commit = (
        parents[0] if len(parents) == 1 and tree == await inside.read("rev-parse", f"{parents[0]}^{{tree}}") else ""
    )
    if not commit:
        options = [option for parent in parents for option in ("-p", parent)]
        commit = await inside.read("commit-tree", tree, *options, "-m", message)
    if commit != tip:
        await inside.do("update-ref", "-m", "windlass: settled", reference, commit, tip or "0" * len(commit))
    return added.exit_code != _SOME_WERE_LEFT_OUT


def _parents(tip: str, head: str, is_ahead: bool) -> list[str]:
    """What the commit follows. An agent may have gone to another branch, or have none: its commits are kept too."""
    if not tip or not head:
        return [commit for commit in (tip, head) if commit]
    return [head] if is_ahead else [tip, head]


async def _is_ancestor(inside: Git, older: str, newer: str) -> bool:
    if not older or not newer:
        return False
    return (await inside.look("merge-base", "--is-ancestor", older, newer)).exit_code == 0


async def read_commit(git: Git, name: str) -> str:
    """The commit that is meant, or ""."""
    answer = await git.look("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return answer.text.strip() if answer.exit_code == 0 else ""


async def read_changes(repository: Git, base: str, branch: str) -> Changes:
    """What is different on the branch. Trees are compared, not contents: no diff program is asked."""
    answer = await repository.look("diff-tree", "-r", "--raw", "--no-renames", "-z", base, f"refs/heads/{branch}")
    pieces = answer.text.split("\0")
    pairs = [(about.split(" "), name) for about, name in zip(pieces[::2], pieces[1::2], strict=False)]
    files = tuple(_readable(name) for _, name in pairs)
    return Changes(files, tuple(name for about, name in pairs if about[1] == _GITLINK), not answer.whole)


def _readable(name: str) -> str:
    """A name that is no UTF-8 could not be sent to anyone."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def holds_repositories(root: str, own_directory: str, changes: Changes) -> bool:
    """Whether the worktree holds commits that are nowhere else: of its submodules, of repositories made in it."""
    submodules = os.path.join(own_directory, "modules")
    if changes.are_more or (os.path.isdir(submodules) and os.listdir(submodules)):
        return True
    return any(os.path.lexists(os.path.join(root, name, ".git")) for name in changes.repositories)
