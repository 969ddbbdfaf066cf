"""What .gitignore excludes, compared with git itself."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.searching import make_files
from windlass.tools.searching.walk import Walk

PIECES = ["a", "b", "ab", "a.c", "b.c", "*", "**", "?", "*.c", "a*", "[ab]", "[!a]", "\\a", "ba"]
NAMES = ["a", "b", "ab", "ba", "a.c", "b.c", "cc"]


def walked(workspace: Path, start: str = "") -> list[str]:
    descriptor = os.open(workspace, os.O_RDONLY)
    try:
        return [file.path for file in Walk(descriptor, start)]
    finally:
        os.close(descriptor)


def told_by_git(workspace: Path) -> list[str]:
    """Every file that git would take, by its own rules and none of the user's."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=workspace, env=environment, capture_output=True, check=True)
        return done.stdout.decode()

    git("init", "--quiet", "--template=")
    try:
        listed = git("-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard")
    finally:
        shutil.rmtree(workspace / ".git")
    return [name for name in listed.split("\0") if name]


def some_rules(dice: random.Random) -> str:
    lines = []
    for _ in range(dice.randint(1, 6)):
        pattern = "/".join(dice.choices(PIECES, k=dice.choice([1, 1, 1, 2, 3])))
        lines.append(
            dice.choice(["", "", "", "!"])
            + dice.choice(["", "", "/"])
            + pattern
            + dice.choice(["", "", "/", " ", "\\ ", "\r"])
        )
    return "\n".join([*lines, "# comment", ""])


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
@pytest.mark.parametrize("seed", range(25))
def test_the_same_files_are_left_out_as_by_git(workspace: Path, seed: int) -> None:
    """The model would see files that the project does not have, or miss some that it has."""
    dice = random.Random(f"ignore {seed}")
    files: dict[str, str | bytes] = {}
    for _ in range(30):
        path = "/".join(dice.choices(NAMES, k=dice.randint(1, 4)))
        if not any(other.startswith(path + "/") or path.startswith(other + "/") for other in files):
            files[path] = ""
    directories = ["", *sorted({path.rpartition("/")[0] + "/" for path in files if "/" in path})]
    for directory in dice.sample(directories, min(3, len(directories))):
        files[f"{directory}.gitignore"] = some_rules(dice)
    make_files(workspace, files)
    assert sorted(walked(workspace)) == sorted(told_by_git(workspace))


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("\ufeffa\n", ["b/a.txt", "b/c", "c"]),
        ("a\n!a\n", ["a", "b/a.txt", "b/c", "c"]),
        ("b/\n!b/c\n", ["a", "c"]),
        ("b/*\n!b/c\n", ["a", "b/c", "c"]),
        ("/c\n", ["a", "b/a.txt", "b/c"]),
        ("*.txt\n[\n\\\n", ["a", "b/c", "c"]),
        ("#a\n\\#a\n", ["a", "b/a.txt", "b/c", "c"]),
    ],
    ids=["mark", "taken back", "not below an excluded directory", "beside", "anchored", "broken rules", "comment"],
)
def test_rules_of_gitignore(workspace: Path, rules: str, left: list[str]) -> None:
    """The finer points, one by one."""
    make_files(workspace, {"a": "", "b/a.txt": "", "b/c": "", "c": "", ".gitignore": rules})
    assert [path for path in walked(workspace) if path != ".gitignore"] == left


def test_a_gitignore_that_is_a_link_or_too_long_is_not_read(workspace: Path, tmp_path: Path) -> None:
    """A21 A22: what is outside would decide what is seen inside; a sparse file of 10 GB would fill the memory."""
    (tmp_path / "rules").write_text("*\n")
    make_files(workspace, {"a": "", "b/c": ""})
    (workspace / ".gitignore").symlink_to(tmp_path / "rules")
    with (workspace / "b" / ".gitignore").open("wb") as file:
        file.write(b"*\n")
        file.truncate(10 * 1024**3)
    assert walked(workspace) == ["a", "b/.gitignore", "b/c"]


def test_the_rules_above_hold_in_a_directory_that_is_named(workspace: Path) -> None:
    """A search in `src` would find what a search of everything does not."""
    make_files(workspace, {".gitignore": "*.o\n/src/gen/\n", "src/a.o": "", "src/a.c": "", "src/gen/b.c": ""})
    assert walked(workspace, "src") == ["src/a.c"]
    assert walked(workspace, "src/gen") == ["src/gen/b.c"]
