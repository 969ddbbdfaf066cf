"""glob: files by name, the newest first; and the patterns it shares with grep and .gitignore."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.tools.searching import WITHOUT, glob, make_files
from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.glob import Glob
from windlass.tools.searching.globs import GlobPattern
from windlass.wire.tools import Tool, ToolError


def ages(workspace: Path, *names: str) -> None:
    """Files, the first the newest."""
    for age, name in enumerate(names):
        make_files(workspace, {name: ""})
        os.utime(workspace / name, (1_000_000 - age, 1_000_000 - age))


async def test_the_newest_file_comes_first(root: WorkspaceRoot, workspace: Path) -> None:
    """What was worked on last is mostly what is meant; of many files only the first are shown."""
    ages(workspace, "src/b.py", "a.py", "src/deep/c.py")
    assert await glob(root, "**/*.py") == "src/b.py\na.py\nsrc/deep/c.py"


async def test_equally_old_files_come_by_path(root: WorkspaceRoot, workspace: Path) -> None:
    """A fresh checkout would be told in another order each time."""
    make_files(workspace, {"b": "", "a/z": "", "a.txt": ""})
    for name in ("b", "a/z", "a.txt"):
        os.utime(workspace / name, (1, 1))
    assert await glob(root, "*") == "a/z\na.txt\nb"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "x/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("**/x/**/y", "a/x/b/c/y", True),
        ("**/x/**/y", "a/b/y", False),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("**", "a/b", True),
        ("./src/a", "src/a", True),
        ("/a", "a", True),
        ("/a", "b/a", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,js{,x}}", "a.jsx", True),
        ("{a}", "{a}", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        ("[]a]", "]", True),
        ("[[:digit:]]*", "7up", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("a.c", "abc", False),
        ("A", "a", False),
        (".*", ".env", True),
        ("*", ".env", True),
        ("*a*b*c", "xaxbxc", True),
        ("*a*b*c", "xaxbxcx", False),
        ("*ab", "aab", True),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, path: str, fits: bool) -> None:
    """Files would be missed, or others found."""
    assert GlobPattern(pattern).matches(path) is fits


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    """A32: going back over every star would take longer than anyone lives."""
    assert not GlobPattern("*a" * 40 + "b").matches("a" * 250)
    assert not GlobPattern("**/a/" * 20 + "b").matches("a/" * 200 + "c")


@pytest.mark.parametrize("pattern", ["[a", "a\\", "../*", "a/../../b", "/", "[[:nonsense:]]", "{a,b}" * 7])
def test_a_pattern_that_makes_no_sense_is_refused(root: WorkspaceRoot, pattern: str) -> None:
    """A20: nothing would be found, and the model not know why."""
    with pytest.raises(ToolError, match=r"pattern|outside"):
        Glob(root, WITHOUT).plan({"pattern": pattern}, "call")


async def test_a_directory_can_be_named(root: WorkspaceRoot, workspace: Path) -> None:
    """The pattern is relative to it; results are relative to the workspace, as every tool takes them."""
    make_files(workspace, {"src/a.py": "", "src/deep/b.py": "", "c.py": ""})
    assert await glob(root, "*/*.py", path="src") == "src/deep/b.py"


async def test_an_absolute_pattern_below_the_workspace_is_taken(root: WorkspaceRoot, workspace: Path) -> None:
    """Models often write absolute paths."""
    make_files(workspace, {"src/a.py": "", "deep/src/b.py": ""})
    assert await glob(root, f"{workspace}/src/*.py") == "src/a.py"
    assert await glob(root, f"{workspace}/src/*.py", path="src") == "src/a.py"
    with pytest.raises(ToolError, match="outside the workspace"):
        await glob(root, "/etc/*")


async def test_what_is_excluded_and_what_is_no_file_is_skipped(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path
) -> None:
    """A21: `.git` and what was built would be all that fits; a link out of the workspace be walked."""
    make_files(workspace, {".git/a": "", "build/a": "", ".gitignore": "build\n", "sub/.git": "gitdir: x", "sub/a": ""})
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "loop").symlink_to(".")
    os.mkfifo(workspace / "pipe")
    assert sorted((await glob(root, "*")).splitlines()) == [".gitignore", "sub/a"]


async def test_what_is_shown_is_bounded_and_says_so(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would take a part for the whole."""
    ages(workspace, *(f"{number}" for number in range(20)))
    text = await glob(root, "*", limit=2)
    assert text == "0\n1\n[the 2 newest of 20 files; a narrower pattern or another `path` shows others]"
    make_files(workspace, {f"{number:03}{'x' * 240}": "" for number in range(200)})
    assert len(await glob(root, "*", limit=1_000)) < limits.TOOL_OUTPUT_CHARACTERS


async def test_nothing_found_is_said(root: WorkspaceRoot) -> None:
    """An empty answer looks like a tool that is broken."""
    assert await glob(root, "*") == "No file matches."


@pytest.mark.parametrize("path", ["..", "/etc", "a\0", "x" * 5_000])
def test_a_directory_outside_is_refused(root: WorkspaceRoot, path: str) -> None:
    """A20."""
    with pytest.raises(ToolError):
        Glob(root, WITHOUT).plan({"pattern": "*", "path": path}, "call")


def test_the_ask_names_the_directory(root: WorkspaceRoot, workspace: Path) -> None:
    """I10."""
    tool: Tool = Glob(root, WITHOUT)
    arguments: dict[str, Any] = {"pattern": "*.py"}
    ask = tool.plan(arguments, "call").ask
    assert (ask.action, ask.resource, ask.path, tool.read_only) == ("search", ".", str(workspace), True)


@pytest.mark.parametrize("pattern", ["{" * 900 + "{a,b}" * 6, "{a," * 330, "{" * 400 + "," * 90 + "}" * 400])
def test_braces_take_no_time(pattern: str) -> None:
    """A32: patterns are read in a thread of the server; a few such calls at once would stop every other one."""
    began = time.thread_time()
    GlobPattern(pattern)
    assert time.thread_time() - began < 2.0  # it was over 8 seconds
