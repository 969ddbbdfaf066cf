"""Worktrees: an agent that writes has a directory and a branch of its own, and what it did is on that branch."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.fleet.repositories import SESSION, Repository
from windlass import limits
from windlass.fleet.worktree.worktrees import Settled, Worktree, WorktreeError, Worktrees
from windlass.guardian.handle import Guardian

pytestmark = pytest.mark.asyncio(loop_scope="module")
BRANCH = f"windlass/{SESSION}"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def worktrees(guardian: Guardian, repository: Repository, tmp_path: Path) -> Worktrees:
    return Worktrees(guardian, tmp_path / "worktrees", repository.environment)


async def opened(worktrees: Worktrees, workspace: Path | str, session_id: str = SESSION) -> Worktree:
    worktree = await worktrees.open(str(workspace), session_id)
    assert worktree is not None
    return worktree


# -- open -------------------------------------------------------------------------------------------------------------


async def test_an_agent_gets_a_branch_of_its_own_from_the_head(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """Two agents would write over each other's files."""
    worktree = await opened(worktrees, repository.path)
    assert worktree.path == str(tmp_path / "worktrees" / SESSION)
    assert (worktree.branch, worktree.base) == (BRANCH, repository.git("rev-parse", "main"))
    assert repository.git("status", "--porcelain", "--branch", at=worktree.path) == f"## {BRANCH}"
    assert (Path(worktree.path) / "source/code.py").read_text() == "pass\n"


async def test_what_the_user_has_not_committed_is_neither_taken_nor_touched(
    worktrees: Worktrees, repository: Repository
) -> None:
    """A user's half-done change would end up in an agent's commit, or be lost."""
    repository.write({"README": "half done\n", "new": "x"})
    worktree = await opened(worktrees, repository.path)
    await worktrees.settle(worktree)
    assert repository.git("status", "--porcelain") == "M README\n?? new"
    assert repository.branches() == ["main"]


async def test_no_worktree_without_a_repository(worktrees: Worktrees, tmp_path: Path) -> None:
    """An agent could not start in an ordinary directory."""
    assert await worktrees.open(str(tmp_path), SESSION) is None


async def test_no_worktree_without_a_commit(worktrees: Worktrees, repository: Repository, tmp_path: Path) -> None:
    """There is nothing to branch from."""
    repository.git("init", "--quiet", str(tmp_path / "empty"))
    assert await worktrees.open(str(tmp_path / "empty"), SESSION) is None


async def test_no_worktree_in_a_bare_repository(worktrees: Worktrees, repository: Repository, tmp_path: Path) -> None:
    """The workspace is git's own directory; an agent that is sent there wants exactly those files."""
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare"))
    assert await worktrees.open(str(tmp_path / "bare"), SESSION) is None
    assert await worktrees.open(str(repository.path / ".git"), SESSION) is None


async def test_a_detached_head_is_branched_from(worktrees: Worktrees, repository: Repository) -> None:
    """Looking at an old commit would make agents impossible, or start them from another one."""
    first = repository.git("rev-parse", "HEAD")
    repository.commit("The second")
    repository.git("checkout", "--quiet", first)
    worktree = await opened(worktrees, repository.path)
    assert repository.git("rev-parse", "HEAD", at=worktree.path) == first == worktree.base


async def test_a_workspace_below_the_top_has_the_same_place_in_the_worktree(
    worktrees: Worktrees, repository: Repository
) -> None:
    """The agent's relative paths would mean other files."""
    worktree = await opened(worktrees, repository.path / "source")
    assert worktree.path.endswith(f"/{SESSION}/source")
    repository.write({"code.py": "done\n"}, at=worktree.path)
    assert (await worktrees.settle(worktree)).changed_files == ("source/code.py",)


async def test_a_workspace_of_which_nothing_is_committed_is_an_empty_directory(
    worktrees: Worktrees, repository: Repository
) -> None:
    """The agent would start in a directory that is not there."""
    (repository.path / "fresh").mkdir()
    worktree = await opened(worktrees, repository.path / "fresh")
    assert os.listdir(worktree.path) == []


async def test_a_symlink_in_the_last_commit_leads_nobody_out(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """An agent in a worktree of its own would write into the user's files."""
    (repository.path / "place").symlink_to(tmp_path / "home")
    repository.commit("A link")
    (repository.path / "place").unlink()
    (repository.path / "place").mkdir()
    with pytest.raises(WorktreeError, match="symlink"):
        await worktrees.open(str(repository.path / "place"), SESSION)


async def test_a_workspace_that_is_a_symlink_is_what_it_leads_to(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """People link their projects; git would be asked about a path it does not know."""
    (tmp_path / "link").symlink_to(repository.path / "source")
    worktree = await opened(worktrees, tmp_path / "link")
    assert worktree.path.endswith(f"/{SESSION}/source")


async def test_opening_twice_gives_the_same_with_what_is_in_it(worktrees: Worktrees, repository: Repository) -> None:
    """A server that restarts would throw away what an interrupted agent had written."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"README": "half done\n"}, at=worktree.path)
    assert await opened(worktrees, repository.path) == worktree
    assert (Path(worktree.path) / "README").read_text() == "half done\n"


@pytest.mark.parametrize("session_id", ["", "../main", "ses_0", "ses_" + "0" * 32 + "\n", "-b"])
async def test_a_strange_session_id_reaches_no_path(
    worktrees: Worktrees, repository: Repository, session_id: str
) -> None:
    """An id with a slash in it would be a directory of somebody else's."""
    with pytest.raises(WorktreeError, match="not a session's id"):
        await worktrees.open(str(repository.path), session_id)


async def test_a_branch_that_the_user_has_checked_out_is_refused_with_the_place(
    worktrees: Worktrees, repository: Repository
) -> None:
    """The agent would commit under the feet of whoever looks at its work."""
    repository.git("checkout", "--quiet", "-b", BRANCH)
    with pytest.raises(WorktreeError, match=f"checked out at '{repository.path}'"):
        await worktrees.open(str(repository.path), SESSION)


async def test_a_directory_in_the_way_is_not_touched(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """Files of which we know nothing would be deleted."""
    repository.write({"precious": "x"}, at=tmp_path / "worktrees" / SESSION)
    with pytest.raises(WorktreeError, match="Move it elsewhere"):
        await worktrees.open(str(repository.path), SESSION)


async def test_without_git_the_error_says_what_to_do(guardian: Guardian, repository: Repository) -> None:
    """The user would read a number."""
    worktrees = Worktrees(guardian, repository.home, {**repository.environment, "PATH": str(repository.home)})
    with pytest.raises(WorktreeError, match=r"git is not installed\. Install it, or set `worktree = false`"):
        await worktrees.open(str(repository.path), SESSION)


# -- settle -----------------------------------------------------------------------------------------------------------


async def test_what_is_not_committed_is_committed_and_the_directory_goes(
    worktrees: Worktrees, repository: Repository
) -> None:
    """The parent would be told a branch on which the work is not."""
    worktree = await opened(worktrees, repository.path)
    (Path(worktree.path) / "source/code.py").unlink()
    repository.write({"README": "changed\n", "new/file": "x", "noise.log": "x"}, at=worktree.path)
    settled = await worktrees.settle(worktree)
    assert settled == Settled(BRANCH, 1, ("README", "new/file", "source/code.py"))
    assert repository.show(BRANCH, "README") == "changed"
    assert repository.git("log", "-1", "--format=%s", BRANCH) == f"Work of agent {SESSION}"
    assert not os.access(worktree.path, os.F_OK)
    assert repository.worktrees() == [str(repository.path)]


async def test_an_agents_own_commits_count(worktrees: Worktrees, repository: Repository) -> None:
    """Work that is committed properly would be taken for none, and its branch deleted."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    repository.commit("One", at=worktree.path)
    repository.commit("Two", at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 2, ("one",))


async def test_a_branch_with_nothing_on_it_is_deleted(worktrees: Worktrees, repository: Repository) -> None:
    """Every question asked of an agent would leave a branch."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"noise.log": "x"}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled("")
    assert repository.branches() == ["main"]


async def test_settling_again_says_the_same(worktrees: Worktrees, repository: Repository) -> None:
    """A server that was stopped right after it would not know any more what the agent did."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    assert await worktrees.settle(worktree) == await worktrees.settle(worktree)


async def test_an_agent_that_runs_again_finds_its_work(worktrees: Worktrees, repository: Repository) -> None:
    """A second message to an agent would meet one that has lost its files."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    await worktrees.settle(worktree)
    repository.commit("The user goes on")
    again = await opened(worktrees, repository.path)
    assert (Path(again.path) / "one").read_text() == "1"
    repository.write({"two": "2"}, at=again.path)
    assert await worktrees.settle(again) == Settled(BRANCH, 2, ("one", "two"))


async def test_long_lists_of_files_are_cut_and_said_to_be(
    worktrees: Worktrees, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vendored library would fill the parent's context."""
    monkeypatch.setattr(limits, "WORKTREE_FILES", 2)
    worktree = await opened(worktrees, repository.path)
    repository.write({"a": "", "b": "", "c": ""}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("a", "b"), more_files=True)


async def test_work_on_another_branch_is_brought_to_the_agents_own(
    worktrees: Worktrees, repository: Repository
) -> None:
    """Agents like to make branches; the parent would be told that nothing was done."""
    worktree = await opened(worktrees, repository.path)
    repository.git("checkout", "--quiet", "-b", "feature", at=worktree.path)
    repository.write({"one": "1"}, at=worktree.path)
    repository.commit("One", at=worktree.path)
    repository.write({"two": "2"}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 2, ("one", "two"))


async def test_work_beside_the_branch_is_joined_to_it(worktrees: Worktrees, repository: Repository) -> None:
    """One of two lines of work would be lost."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    first = repository.commit("One", at=worktree.path)
    repository.git("checkout", "--quiet", "--detach", worktree.base, at=worktree.path)
    repository.write({"two": "2"}, at=worktree.path)
    second = repository.commit("Two", at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 3, ("two",))
    assert repository.git("log", "-1", "--format=%P", BRANCH) == f"{first} {second}"


async def test_a_merge_that_was_given_up_half_way_is_kept_as_it_is(
    worktrees: Worktrees, repository: Repository
) -> None:
    """An index with conflicts cannot be committed, and the agent could never be settled."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"README": "mine\n"}, at=worktree.path)
    repository.commit("Mine", at=worktree.path)
    repository.write({"README": "yours\n"})
    repository.commit("Yours")
    with pytest.raises(AssertionError):
        repository.git("merge", "main", at=worktree.path)
    assert (await worktrees.settle(worktree)).commits == 2
    assert "<<<<<<<" in repository.show(BRANCH, "README")


@pytest.mark.parametrize("commits", [0, 1])
async def test_a_repository_inside_stays_where_it_is(
    worktrees: Worktrees, repository: Repository, commits: int
) -> None:
    """Its commits are nowhere else; and the rest of the work must be on the branch all the same."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1", "inner/file": "x"}, at=worktree.path)
    repository.git("init", "--quiet", at=f"{worktree.path}/inner")
    for _ in range(commits):
        repository.commit("Inner", at=f"{worktree.path}/inner")
    settled = await worktrees.settle(worktree)
    assert (settled.branch, settled.left_at) == (BRANCH, worktree.path)
    assert repository.show(BRANCH, "one") == "1"
    assert (Path(worktree.path) / "inner/file").exists()


async def test_a_submodule_nobody_filled_is_no_hindrance(
    worktrees: Worktrees, repository: Repository, tmp_path: Path
) -> None:
    """Repositories with submodules would leave every worktree behind."""
    repository.git("clone", "--quiet", str(repository.path), str(tmp_path / "library"))
    repository.git("submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    repository.commit("A submodule")
    worktree = await opened(worktrees, repository.path)
    assert list((Path(worktree.path) / "library").iterdir()) == []
    repository.write({"one": "1"}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",))
    assert not os.access(worktree.path, os.F_OK)


async def test_a_submodule_the_agent_filled_stays(worktrees: Worktrees, repository: Repository, tmp_path: Path) -> None:
    """Its commits are in the worktree's part of the repository, and would go with it."""
    repository.git("clone", "--quiet", str(repository.path), str(tmp_path / "library"))
    repository.git("submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    repository.commit("A submodule")
    worktree = await opened(worktrees, repository.path)
    repository.git("submodule", "--quiet", "update", "--init", at=worktree.path)
    assert (await worktrees.settle(worktree)).left_at == worktree.path


@pytest.mark.parametrize("reason", [[], ["--reason", "I look at it"]])
async def test_a_worktree_the_user_locked_stays(
    worktrees: Worktrees, repository: Repository, reason: list[str]
) -> None:
    """Somebody who says "do not remove this" would find it removed."""
    worktree = await opened(worktrees, repository.path)
    repository.git("worktree", "lock", *reason, worktree.path)
    repository.write({"one": "1"}, at=worktree.path)
    assert await worktrees.settle(worktree) == Settled(BRANCH, 1, ("one",), left_at=worktree.path)


async def test_the_author_is_the_user(worktrees: Worktrees, repository: Repository) -> None:
    """The history would not say whose agent it was."""
    repository.git("config", "user.name", "Grace")
    repository.git("config", "user.email", "grace@example.org")
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    await worktrees.settle(worktree)
    assert repository.git("log", "-1", "--format=%an %ae %cn", BRANCH) == "Grace grace@example.org Grace"


async def test_without_a_user_the_author_is_windlass(worktrees: Worktrees, repository: Repository) -> None:
    """On a fresh machine git refuses to commit, and the work would be stuck."""
    worktree = await opened(worktrees, repository.path)
    repository.write({"one": "1"}, at=worktree.path)
    await worktrees.settle(worktree)
    assert repository.git("log", "-1", "--format=%an %ae", BRANCH) == "windlass windlass@localhost"


async def test_eight_agents_at_once_in_one_repository(worktrees: Worktrees, repository: Repository) -> None:
    """Their gits would meet at a lock of the repository, and some agents would not start, or lose their work."""

    async def work(number: int) -> Settled:
        worktree = await opened(worktrees, repository.path, f"ses_{number:032x}")
        repository.write({f"file{number}": "x"}, at=worktree.path)
        return await worktrees.settle(worktree)

    settled = await asyncio.gather(*(work(number) for number in range(8)))
    assert settled == [Settled(f"windlass/ses_{n:032x}", 1, (f"file{n}",)) for n in range(8)]
    assert repository.worktrees() == [str(repository.path)]


# Another worktree is half made while git adds ours for the first time: git fails, and has made the branch already.
_MEETS_ANOTHER = """#!/bin/sh
case " $* " in *" worktree add "*)
  if [ ! -e "{met}" ]; then
    mkdir "{other}"
    echo /nowhere/.git > "{other}/gitdir"; echo ref: refs/heads/other > "{other}/HEAD"; : > "{other}/commondir"
    "{git}" "$@"; code=$?
    rm "{other}"/*; mv "{other}" "{met}"; exit $code
  fi;;
esac
exec "{git}" "$@"
"""


async def test_a_worktree_that_is_added_beside_a_half_made_one_is_added_again(
    guardian: Guardian, repository: Repository, tmp_path: Path
) -> None:
    """The second try would find the branch that the first one left, and the agent could not start."""
    met = tmp_path / "met"
    other = repository.path / ".git/worktrees/other"
    other.parent.mkdir()
    shim = tmp_path / "bin/git"
    shim.parent.mkdir()
    shim.write_text(_MEETS_ANOTHER.format(git=shutil.which("git"), other=other, met=met))
    shim.chmod(0o700)
    environment = {**repository.environment, "PATH": f"{shim.parent}:{repository.environment['PATH']}"}
    worktree = await opened(Worktrees(guardian, tmp_path / "worktrees", environment), repository.path)
    assert met.exists()
    assert repository.git("status", "--porcelain", "--branch", at=worktree.path) == f"## {BRANCH}"
