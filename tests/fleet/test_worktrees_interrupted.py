"""Worktrees after an interruption: whatever was cancelled or killed, the next call repairs it and no work is lost."""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.fleet.repositories import SESSION, Repository
from windlass import limits
from windlass.fleet.worktree import remains
from windlass.fleet.worktree.worktree_entry import mark_committed
from windlass.fleet.worktree.worktrees import Settled, Worktree, WorktreeError, Worktrees
from windlass.guardian.handle import Guardian
from windlass.guardian.process import GuardedProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRANCH = f"windlass/{SESSION}"
Interrupt = Callable[[GuardedProcess], object]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def worktrees(guardian: Guardian, repository: Repository, tmp_path: Path) -> Worktrees:
    return Worktrees(guardian, tmp_path / "worktrees", repository.environment)


async def opened(worktrees: Worktrees, repository: Repository) -> Worktree:
    worktree = await worktrees.open(str(repository.path), SESSION)
    assert worktree is not None
    return worktree


# Every command of ours that changes something, in order.
OPENING = ("update-ref", "worktree add", "reset", "worktree unlock")
SETTLING = ("add", "write-tree", "commit-tree", "update-ref", "worktree remove")


class Interrupting:
    """The guardian, which does something to a git of ours, or to its caller, as soon as it has started it."""

    def __init__(self, guardian: Guardian, command: str, then: Callable[[GuardedProcess], object]) -> None:
        self._guardian = guardian
        self._command = command.split()
        self._then = then
        self.has_interrupted = False

    async def spawn(self, argv: Sequence[str], *, cwd: str, env: dict[str, str]) -> GuardedProcess:
        process = await self._guardian.spawn(argv, cwd=cwd, env=env)
        words = [word for word in argv[argv.index("--no-pager") + 1 :] if not word.startswith("--git-dir=")]
        if words[: len(self._command)] == self._command:
            self.has_interrupted = True
            self._then(process)
        return process


def kill(process: GuardedProcess) -> None:
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it was faster


def cancel(process: GuardedProcess) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@pytest.mark.parametrize("command", OPENING)
@pytest.mark.parametrize("interrupt", [kill, cancel])
async def test_an_open_that_was_interrupted_is_made_good_by_the_next(
    worktrees: Worktrees, guardian: Guardian, repository: Repository, command: str, interrupt: Interrupt
) -> None:
    """One crash at the wrong moment, and an agent could never be started again."""
    spawner = Interrupting(guardian, command, interrupt)
    shaky = Worktrees(spawner, repository.home.parent / "worktrees", repository.environment)
    await asyncio.wait({asyncio.create_task(_swallow(shaky.open(str(repository.path), SESSION)))})
    assert spawner.has_interrupted
    worktree = await opened(worktrees, repository)
    assert repository.git("status", "--porcelain", "--branch", at=worktree.path) == f"## {BRANCH}"
    assert await worktrees.settle(worktree) == Settled("")
    assert repository.worktrees() == [str(repository.path)]


@pytest.mark.parametrize("command", SETTLING)
@pytest.mark.parametrize("interrupt", [kill, cancel])
async def test_a_settle_that_was_interrupted_is_made_good_by_the_next(
    worktrees: Worktrees, guardian: Guardian, repository: Repository, command: str, interrupt: Interrupt
) -> None:
    """Half an agent's work would be lost, or its worktree would stay for ever."""
    worktree = await opened(worktrees, repository)
    repository.write({"README": "changed\n", "new": "x"}, at=worktree.path)
    spawner = Interrupting(guardian, command, interrupt)
    shaky = Worktrees(spawner, repository.home.parent / "worktrees", repository.environment)
    await asyncio.wait({asyncio.create_task(_swallow(shaky.settle(worktree)))})
    assert spawner.has_interrupted
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("README", "new"))
    assert repository.worktrees() == [str(repository.path)]


async def _swallow(call: Awaitable[object]) -> None:
    with contextlib.suppress(WorktreeError):
        await call


async def test_a_worktree_that_was_half_removed_is_not_taken_for_the_agents_deletions(
    worktrees: Worktrees, repository: Repository
) -> None:
    """A kill while the directory is removed, and the next start would commit that all files are gone."""
    worktree = await opened(worktrees, repository)
    repository.write({"one": "1"}, at=worktree.path)
    repository.commit("One", at=worktree.path)
    reason = "its work is committed, it is being removed"
    repository.git("worktree", "lock", "--reason", reason, worktree.path)
    for name in ("README", ".git", "one"):
        (Path(worktree.path) / name).unlink()
    again = await opened(worktrees, repository)
    assert repository.git("status", "--porcelain", at=again.path) == ""
    assert await worktrees.settle(again) == Settled(BRANCH, 1, ("one",))


async def test_a_worktree_whose_git_file_was_not_yet_written_is_made_anew(
    worktrees: Worktrees, repository: Repository
) -> None:
    """Git makes the file before it writes it: killed in between, the agent's worktree could never be opened again."""
    worktree = await opened(worktrees, repository)
    repository.git("worktree", "lock", "--reason", "initializing", worktree.path)
    (Path(worktree.path) / ".git").write_text("")
    again = await opened(worktrees, repository)
    assert repository.git("status", "--porcelain", at=again.path) == ""


# What git was seen to leave, killed at each call of `worktree add` and `worktree remove` that changes a file.
HALF_ENTRIES = {
    "made, HEAD not yet written": {"HEAD": "", "commondir": None, "index": None},
    "made, commondir not yet written": {"commondir": "", "index": None},
    "made, gitdir not yet written": {"gitdir": "", "HEAD": None, "commondir": None, "index": None},
    "made, only locked": {"gitdir": None, "HEAD": None, "commondir": None, "index": None, "ORIG_HEAD": None},
    "removed, gitdir gone": {"gitdir": None},
    "removed, gitdir and lock gone": {"gitdir": None, "locked": None},
}


@pytest.mark.parametrize("half", HALF_ENTRIES.values(), ids=HALF_ENTRIES)
async def test_half_an_entry_of_git_is_no_hindrance(
    worktrees: Worktrees, repository: Repository, half: dict[str, str | None]
) -> None:
    """One kill of git at the wrong moment: the agent could never be opened again, or git would list no worktree."""
    worktree = await opened(worktrees, repository)
    own_directory = leave_half(repository, worktree.path, half)
    again = await opened(worktrees, repository)
    assert repository.git("status", "--porcelain", at=again.path) == ""
    assert await worktrees.settle(again) == Settled("")
    assert repository.worktrees() == [str(repository.path)] and not os.access(own_directory, os.F_OK)


@pytest.mark.parametrize("half", HALF_ENTRIES.values(), ids=HALF_ENTRIES)
async def test_settling_takes_half_an_entry_away(
    worktrees: Worktrees, repository: Repository, half: dict[str, str | None]
) -> None:
    """It would stay in the user's repository for ever, and the branch with it."""
    worktree = await opened(worktrees, repository)
    own_directory = leave_half(repository, worktree.path, half)
    assert await worktrees.settle(worktree) == Settled("")
    assert repository.worktrees() == [str(repository.path)] and not os.access(own_directory, os.F_OK)
    assert repository.branches() == ["main"]


async def test_half_an_entry_beside_work_is_left_alone(worktrees: Worktrees, repository: Repository) -> None:
    """An agent that breaks what git keeps would lose what it made."""
    worktree = await opened(worktrees, repository)
    own_directory = repository.git("rev-parse", "--absolute-git-dir", at=worktree.path)
    repository.write({"HEAD": ""}, at=own_directory)
    repository.write({"one": "1"}, at=worktree.path)
    with pytest.raises(WorktreeError):
        await worktrees.settle(worktree)
    assert os.access(f"{worktree.path}/one", os.F_OK) and os.access(own_directory, os.F_OK)


@pytest.mark.parametrize(
    ("seconds_ago", "is_cleared"), [(limits.GIT_SECONDS + 5, True), (limits.GIT_SECONDS - 60, False)]
)
async def test_half_an_entry_of_another_agent_goes_when_nobody_can_be_at_it(
    worktrees: Worktrees, repository: Repository, seconds_ago: float, is_cleared: bool
) -> None:
    """Git would list no worktree for anyone; or one that another process is just making would be taken from it."""
    worktree = await opened(worktrees, repository)
    own_directory = leave_half(repository, worktree.path, {"index": None, "gitdir": ""})
    long_ago = time.time() - seconds_ago
    os.utime(own_directory, (long_ago, long_ago))
    assert await worktrees.open(str(repository.path), "ses_" + "1" * 32)
    assert os.access(own_directory, os.F_OK) != is_cleared


async def test_no_link_leads_the_clearing_out_of_the_repository(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """An agent may write in the repository: the server would remove for it what it may not remove itself."""
    ours = tmp_path / "ours"
    for name in (SESSION, "ses_" + "2" * 32):
        (ours / name).mkdir(parents=True)
    entries = repository.path / ".git" / "worktrees"
    entries.symlink_to(ours)
    remains.clear(str(repository.path / ".git"), str(tmp_path / "worktrees"), SESSION)
    entries.unlink()
    entries.mkdir()
    (entries / SESSION).symlink_to(ours)
    remains.clear(str(repository.path / ".git"), str(tmp_path / "worktrees"), SESSION)
    assert sorted(os.listdir(ours)) == [SESSION, "ses_" + "2" * 32]


@pytest.mark.parametrize("is_gits", [True, False])
async def test_what_git_does_not_put_into_an_entry_is_left_alone(
    repository: Repository, tmp_path: Path, is_gits: bool
) -> None:
    """Whatever else has such a name would be removed."""
    name = "index.lock" if is_gits else "notes"
    repository.write({f".git/worktrees/{SESSION}/{name}": "x"})
    remains.clear(str(repository.path / ".git"), str(tmp_path / "worktrees"), SESSION)
    assert (repository.path / ".git" / "worktrees" / SESSION).exists() != is_gits


async def test_the_mark_is_not_written_through_a_link(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """An agent may write beside it: the server would write for it into what it may not write itself."""
    precious = tmp_path / "precious"
    precious.write_text("ours")
    worktree = await opened(worktrees, repository)
    own_directory = repository.git("rev-parse", "--absolute-git-dir", at=worktree.path)
    os.symlink(precious, f"{own_directory}/locked.windlass")
    assert await asyncio.to_thread(mark_committed, own_directory)
    assert precious.read_text() == "ours"


def leave_half(repository: Repository, path: str, half: dict[str, str | None]) -> str:
    """Make the entry so, and the directory empty but for git's file in it. Returns where the entry is."""
    own_directory = repository.git("rev-parse", "--absolute-git-dir", at=path)
    for name in ("README", ".gitignore", "source/code.py"):
        os.unlink(f"{path}/{name}")
    os.rmdir(f"{path}/source")
    for name, content in {"locked": "added with --lock\n", **half}.items():
        if content is None:
            Path(own_directory, name).unlink(missing_ok=True)
        else:
            repository.write({name: content}, at=own_directory)
    return own_directory


async def test_a_server_killed_while_it_marks_a_worktree_leaves_no_lock(
    worktrees: Worktrees, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock without a reason looks like the user's: the worktree would stay for ever."""

    def die(*names: str, **directories: int) -> None:
        raise KeyboardInterrupt(names, directories)

    worktree = await opened(worktrees, repository)
    repository.write({"one": "1"}, at=worktree.path)
    own_directory = repository.git("rev-parse", "--absolute-git-dir", at=worktree.path)
    with monkeypatch.context() as context:
        context.setattr(os, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            await asyncio.to_thread(mark_committed, own_directory)
    assert not os.access(f"{own_directory}/locked", os.F_OK)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",))
    assert not os.access(own_directory, os.F_OK) and not os.access(worktree.path, os.F_OK)


async def test_the_mark_is_read_by_git_as_a_lock(worktrees: Worktrees, repository: Repository) -> None:
    """The next settle could not tell a worktree that is being removed from one that an agent emptied."""
    worktree = await opened(worktrees, repository)
    own_directory = repository.git("rev-parse", "--absolute-git-dir", at=worktree.path)
    assert await asyncio.to_thread(mark_committed, own_directory)
    listed = repository.git("worktree", "list", "--porcelain").split("\n")
    assert "locked its work is committed, it is being removed" in listed
    assert not await asyncio.to_thread(mark_committed, own_directory)


async def test_settling_goes_on_with_a_half_removed_worktree(worktrees: Worktrees, repository: Repository) -> None:
    """It would commit the half that is left."""
    worktree = await opened(worktrees, repository)
    repository.write({"one": "1"}, at=worktree.path)
    repository.commit("One", at=worktree.path)
    reason = "its work is committed, it is being removed"
    repository.git("worktree", "lock", "--reason", reason, worktree.path)
    for name in ("README", ".git", "one"):
        (Path(worktree.path) / name).unlink()
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",))
    assert not os.access(worktree.path, os.F_OK)


async def test_a_checkout_that_was_killed_is_made_anew(worktrees: Worktrees, repository: Repository) -> None:
    """The agent would start with half of the files and commit the others as deleted."""
    root = str(Path(repository.home).parent / "worktrees" / SESSION)
    repository.git("worktree", "add", "--no-checkout", "--lock", "-b", BRANCH, root)
    repository.write({"README": "hel"}, at=root)
    worktree = await opened(worktrees, repository)
    assert repository.git("status", "--porcelain", at=worktree.path) == ""


async def test_a_directory_that_somebody_removed_is_made_anew(worktrees: Worktrees, repository: Repository) -> None:
    """Cleaning up by hand would make the agent impossible: git still knows a worktree there."""
    worktree = await opened(worktrees, repository)
    shutil.rmtree(worktree.path)
    assert await opened(worktrees, repository) == worktree


async def test_locks_of_a_git_that_was_killed_are_no_hindrance(worktrees: Worktrees, repository: Repository) -> None:
    """kill -9 leaves git's lock files; every later command would fail at them."""
    worktree = await opened(worktrees, repository)
    repository.write({"one": "1"}, at=worktree.path)
    inside = repository.git("rev-parse", "--absolute-git-dir", at=worktree.path)
    locks = (f"{inside}/index.lock", f"{inside}/HEAD.lock", f"{worktree.repository}/refs/heads/{BRANCH}.lock")
    repository.write(dict.fromkeys(locks, ""))
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",))


@pytest.mark.parametrize("content", [None, "gitdir: /nowhere\n", "what is this"])
async def test_a_git_file_that_the_agent_broke_is_repaired(
    worktrees: Worktrees, repository: Repository, content: str | None
) -> None:
    """git would look further up, and commit the work into whatever repository it finds there."""
    worktree = await opened(worktrees, repository)
    git_file = Path(worktree.path) / ".git"
    git_file.unlink()
    if content is not None:
        git_file.write_text(content)
    repository.write({"one": "1"}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",))


async def test_a_git_directory_of_the_agents_own_is_refused_and_nothing_is_lost(
    worktrees: Worktrees, repository: Repository
) -> None:
    """The work would be committed where nobody finds it, and the directory removed."""
    worktree = await opened(worktrees, repository)
    (Path(worktree.path) / ".git").unlink()
    repository.git("init", "--quiet", at=worktree.path)
    repository.write({"one": "1"}, at=worktree.path)
    with pytest.raises(WorktreeError):
        await worktrees.settle(worktree)
    assert (Path(worktree.path) / "one").exists()
