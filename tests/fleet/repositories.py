"""A real git repository in a temporary directory, with a configuration that nobody else's reaches."""

import os
import subprocess
from pathlib import Path

SESSION = "ses_" + "0" * 32


class Repository:
    """`.path` is its work tree; `.environment` is for whoever runs git besides us. It starts with one commit."""

    def __init__(self, path: Path) -> None:
        self.path = path / "repository"
        self.home = path / "home"
        self.home.mkdir()
        self.path.mkdir()
        (self.home / "gitconfig").write_text("[init]\n\tdefaultBranch = main\n")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_CONFIG_GLOBAL": str(self.home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.git("init", "--quiet")
        self.write({"README": "hello\n", "source/code.py": "pass\n", ".gitignore": "*.log\n"})
        self.commit("The first")

    def git(self, *arguments: str, at: Path | str | None = None) -> str:
        """What a person or an agent would do."""
        people = [
            *("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "core.hooksPath=/dev/null"),
            *("-c", "protocol.file.allow=always"),
        ]
        done = subprocess.run(
            ["git", *people, *arguments], cwd=at or self.path, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, files: dict[str, str], at: Path | str | None = None) -> None:
        for name, content in files.items():
            path = Path(at or self.path) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def commit(self, message: str, at: Path | str | None = None) -> str:
        self.git("add", "--all", at=at)
        self.git("commit", "--quiet", "--allow-empty", "-m", message, at=at)
        return self.git("rev-parse", "HEAD", at=at)

    def show(self, branch: str, name: str) -> str:
        return self.git("show", f"{branch}:{name}")

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def worktrees(self) -> list[str]:
        listed = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]
