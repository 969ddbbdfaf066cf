"""git is run for the user: within bounds, and without anything that the repository would have it run."""

import os
import shutil
from pathlib import Path

import pytest

from tests.fleet.repositories import SESSION, Repository
from windlass import limits
from windlass.fleet.worktree.git import Git, WorktreeError
from windlass.fleet.worktree.worktrees import Worktrees
from windlass.guardian.handle import Guardian

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOOKS = ("post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "commit-msg")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


class Trap:
    """A program that leaves a mark when it is run, and passes its input on, as a filter does."""

    def __init__(self, path: Path) -> None:
        self._mark = path / "it-was-run"
        self.program = path / "trap"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self._mark}\ncat\n')
        self.program.chmod(0o755)

    @property
    def runs(self) -> str:
        return self._mark.read_text() if self._mark.exists() else ""

    def forget(self) -> None:
        self._mark.unlink(missing_ok=True)


async def work(guardian: Guardian, repository: Repository, workspace: Path | None = None) -> None:
    """An agent's whole life in its worktree."""
    worktrees = Worktrees(guardian, repository.home / "worktrees", repository.environment)
    worktree = await worktrees.open(str(workspace or repository.path), SESSION)
    assert worktree is not None
    repository.write({"README": "changed\n", "new": "x\n"}, at=worktree.path)
    assert (await worktrees.settle(worktree)).commits == 1


async def test_no_hook_runs(guardian: Guardian, repository: Repository, tmp_path: Path) -> None:
    """Starting an agent would execute what nobody allowed (A25)."""
    trap = Trap(tmp_path)
    for hook in HOOKS:
        shutil.copy(trap.program, repository.path / ".git/hooks" / hook)
    await work(guardian, repository)
    assert trap.runs == ""


async def test_no_monitor_signer_or_diff_program_of_the_repository_runs(
    guardian: Guardian, repository: Repository, tmp_path: Path
) -> None:
    """Starting an agent would execute what nobody allowed (A25)."""
    trap = Trap(tmp_path)
    for key in ("core.fsmonitor", "gpg.program", "diff.external", "core.pager", "core.editor", "core.sshCommand"):
        repository.git("config", key, str(trap.program))
    repository.git("config", "commit.gpgSign", "true")
    trap.forget()
    await work(guardian, repository)
    assert trap.runs == ""


FILTER = '[filter "a=b"]\n\tclean = {0} clean\n\tsmudge = {0} smudge\n\tprocess = {0} process\n\trequired = true\n'


async def test_no_filter_of_the_repository_runs(guardian: Guardian, repository: Repository, tmp_path: Path) -> None:
    """A file in the repository chooses the filter, one in `.git` names its program; agents can write both (A25)."""
    trap = Trap(tmp_path)
    repository.write({".gitattributes": "* filter=a=b\n"})
    repository.commit("Attributes")
    with (repository.path / ".git/config").open("a") as config:
        config.write(FILTER.format(trap.program))
    await work(guardian, repository)
    assert trap.runs == ""


async def test_no_filter_that_is_configured_for_the_agents_branch_alone_runs(
    guardian: Guardian, repository: Repository, tmp_path: Path
) -> None:
    """Asked in the workspace, git would not tell of it; in the worktree it would run (A25)."""
    trap = Trap(tmp_path)
    repository.write({".gitattributes": "* filter=a=b\n"})
    repository.commit("Attributes")
    (tmp_path / "included").write_text(FILTER.format(trap.program))
    with (repository.path / ".git/config").open("a") as config:
        config.write(f'[includeIf "onbranch:windlass/**"]\n\tpath = {tmp_path}/included\n')
    await work(guardian, repository)
    assert trap.runs == ""


async def test_a_filter_of_the_user_runs(guardian: Guardian, repository: Repository, tmp_path: Path) -> None:
    """Large files (git-lfs) would be committed whole. Also if the repository names the same filter differently."""
    trap = Trap(tmp_path)
    repository.write({".gitattributes": "* filter=large\n"})
    repository.commit("Attributes")
    with (repository.home / "gitconfig").open("a") as config:
        config.write(f'[filter "large"]\n\tclean = {trap.program} users\n')
    repository.git("config", "filter.large.clean", f"{trap.program} repositorys")
    trap.forget()
    await work(guardian, repository)
    assert "users" in trap.runs
    assert "repositorys" not in trap.runs


async def test_a_directory_that_looks_like_a_repository_is_none(
    guardian: Guardian, repository: Repository, tmp_path: Path
) -> None:
    """A clone can contain one as ordinary files, with a configuration written by whoever made it (A25)."""
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "planted"))
    repository.git("config", "core.bare", "false", at=tmp_path / "planted")
    repository.git("config", "core.worktree", str(tmp_path / "planted"), at=tmp_path / "planted")
    worktrees = Worktrees(guardian, tmp_path / "worktrees", repository.environment)
    assert await worktrees.open(str(tmp_path / "planted"), SESSION) is None


async def test_nothing_is_fetched(guardian: Guardian, repository: Repository, tmp_path: Path) -> None:
    """A clone without its files fetches them on demand, through a program that its configuration names (A25)."""
    trap = Trap(tmp_path)
    repository.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    repository.git("clone", "--quiet", "--filter=blob:none", "--no-checkout", f"file://{repository.path}", str(partial))
    repository.git("config", "remote.origin.uploadpack", str(trap.program), at=partial)
    worktrees = Worktrees(guardian, tmp_path / "worktrees", repository.environment)
    with pytest.raises(WorktreeError):
        await worktrees.open(str(partial), SESSION)
    assert trap.runs == ""


async def test_no_git_is_taken_from_the_directory_it_runs_in(
    guardian: Guardian, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `.` on the PATH, a file named git in the repository would be executed."""
    trap = Trap(tmp_path)
    monkeypatch.chdir(repository.path)
    shutil.copy(trap.program, repository.path / "git")
    environment = {**repository.environment, "PATH": f".::{repository.environment['PATH']}"}
    assert await Git(guardian, environment, str(repository.path)).read("rev-parse", "--show-prefix") == ""
    assert trap.runs == ""


async def test_the_servers_own_git_variables_do_not_reach_it(
    guardian: Guardian, repository: Repository, tmp_path: Path
) -> None:
    """A server started from a hook has GIT_DIR set; every agent would work in that repository."""
    environment = {**repository.environment, "GIT_DIR": str(tmp_path), "GIT_INDEX_FILE": "/nowhere"}
    assert await Git(guardian, environment, str(repository.path)).read("ls-files", "README") == "README"


async def test_warnings_do_not_get_into_what_is_read(guardian: Guardian, repository: Repository) -> None:
    """Both come through one pipe; a warning would be taken for a path."""
    git = Git(guardian, repository.environment, str(repository.path))
    repository.git("tag", "main")
    assert "warning" in await git.do("rev-parse", "main")
    assert await git.read("rev-parse", "main") == repository.git("rev-parse", "HEAD")


def fake_git(repository: Repository, script: str) -> dict[str, str]:
    """The environment with a git of ours in front of the real one, which it finds as $REAL."""
    directory = repository.home / "bin"
    directory.mkdir()
    (directory / "git").write_text(f"#!/bin/sh\nREAL={shutil.which('git')}\n{script}\n")
    (directory / "git").chmod(0o755)
    return {**repository.environment, "PATH": f"{directory}{os.pathsep}{repository.environment['PATH']}"}


async def test_a_lock_that_another_holds_is_waited_for(guardian: Guardian, repository: Repository) -> None:
    """Agents that start at the same moment would fail now and then."""
    seen = repository.home / "seen"
    script = f'[ -e {seen} ] && exec "$REAL" "$@"\n: > {seen}\necho "error: could not lock config file"\nexit 255'
    git = Git(guardian, fake_git(repository, script), str(repository.path))
    assert await git.do("ls-files", "README") == "README\n"


async def test_a_lock_that_stays_is_given_up_on(
    guardian: Guardian, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent would wait for ever for a lock that a dead git has left, and nobody would know why."""
    monkeypatch.setattr(limits, "GIT_LOCK_SECONDS", 0.2)
    (repository.path / ".git/index.lock").touch()
    with pytest.raises(WorktreeError, match=r"index\.lock': File exists"):
        await Git(guardian, repository.environment, str(repository.path)).do("add", "README")


async def test_a_git_that_hangs_is_ended(
    guardian: Guardian, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's run would hang with it (a network file system, a filter that waits)."""
    monkeypatch.setattr(limits, "GIT_SECONDS", 0.2)
    git = Git(guardian, fake_git(repository, "exec sleep 3600"), str(repository.path))
    with pytest.raises(WorktreeError, match=r"did not end within 0\.2 s"):
        await git.do("status")
    assert guardian.running == 0


async def test_more_output_than_the_bound_is_never_taken_for_all_of_it(
    guardian: Guardian, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half of a list would be acted on as if it were the whole."""
    monkeypatch.setattr(limits, "GIT_OUTPUT_BYTES", 10)
    git = Git(guardian, repository.environment, str(repository.path))
    with pytest.raises(WorktreeError, match="more than 10 bytes"):
        await git.read("ls-files")
