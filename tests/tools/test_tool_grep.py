"""grep: the lines that match, in one order, bounded."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.tools.searching import RIPGREP, WITH, WITHOUT, grep, make_files
from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.grep import Grep
from windlass.wire.tools import Tool, ToolError

ENGINES = {"python": WITHOUT, "ripgrep": WITH}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, str]:
    """Every claim holds with ripgrep and without it."""
    if request.param == "ripgrep" and RIPGREP is None:
        pytest.skip("ripgrep is not installed here")
    return ENGINES[request.param]


async def test_lines_come_with_path_and_number_in_one_order(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """The model could not go to what was found, and each call would tell it in another order."""
    make_files(workspace, {"b.py": "x\nfind me\n", "a/z.py": "find me\nfind me too", "a.py": "find me"})
    assert await grep(root, "find", engine) == (
        "a/z.py:1:find me\na/z.py:2:find me too\na.py:1:find me\nb.py:2:find me"
    )


@pytest.mark.parametrize(
    ("pattern", "more", "found"),
    [
        ("O.E", {}, []),
        ("O.E", {"case_insensitive": True}, [1, 4]),
        (r"f(x)", {"literal": True}, [2]),
        (r"^\s*f\(", {}, [2]),
        (r"\bon\b", {}, [4]),
        (r"(?<!g)one", {}, [1]),
        (r"(\w)\1", {}, [3]),
        (r"é$", {}, [5]),
        (r"[^\x00-\x7f]", {}, [5]),
        (r"E\Z", {"case_insensitive": True}, [1, 4]),
        ("no such thing", {}, []),
    ],
)
async def test_the_pattern_is_pythons(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str], pattern: str, more: dict[str, Any], found: list[int]
) -> None:
    """What a pattern means would depend on what is installed."""
    make_files(workspace, {"a": "one\n  f(x)\nloop\non and gone\ncafé\n"})
    text = await grep(root, pattern, engine, **more)
    assert [int(line.split(":")[1]) for line in text.splitlines() if line.startswith("a:")] == found


async def test_line_ends_and_the_mark_at_the_beginning_are_no_part_of_a_line(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """`^` and `$` would not find what one sees."""
    make_files(workspace, {"a": b"\xef\xbb\xbfone\r\ntwo\r\n"})
    assert await grep(root, "^(one|two)$", engine) == "a:1:one\na:2:two"


async def test_bytes_that_are_no_text_are_searched_around(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """A source file in Latin-1 would be invisible."""
    make_files(workspace, {"a": "für alle\n".encode("latin-1")})
    assert await grep(root, "f.r", engine) == "a:1:f\ufffdr alle"


async def test_files_and_counts_can_be_asked_for(root: WorkspaceRoot, workspace: Path, engine: dict[str, str]) -> None:
    """Hundreds of lines would fill the context when only the places are wanted."""
    make_files(workspace, {"a": "x\nx\n", "b": "y", "c": "x"})
    assert await grep(root, "x", engine, output="files") == "a\nc"
    assert await grep(root, "x", engine, output="count") == "a:2\nc:1"


async def test_context_is_shown_once_and_apart(root: WorkspaceRoot, workspace: Path, engine: dict[str, str]) -> None:
    """Lines between two matches would be told twice, or two places look like one."""
    make_files(workspace, {"a": "1\nx2\n3\nx4\n5\n6\n7\nx8\n"})
    assert await grep(root, "x", engine, context=1) == "a-1-1\na:2:x2\na-3-3\na:4:x4\na-5-5\n--\na-7-7\na:8:x8"


async def test_a_path_and_a_glob_narrow_the_search(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """The model could not search in the part it works on."""
    make_files(workspace, {"src/a.py": "x", "src/b.ts": "x", "src/deep/c.py": "x", "a.py": "x"})
    assert await grep(root, "x", engine, path="src", include="*.py", output="files") == "src/a.py\nsrc/deep/c.py"
    assert await grep(root, "x", engine, include="src/*.{py,ts}", output="files") == "src/a.py\nsrc/b.ts"
    assert await grep(root, "x", engine, path="src/b.ts") == "src/b.ts:1:x"


async def test_what_gitignore_excludes_is_skipped_unless_named(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """Built files and dependencies would be all that is found; or one could never look into them."""
    make_files(workspace, {".gitignore": "build/\n", "build/a": "x", ".git/config": "x", "b": "x", ".hidden": "x"})
    assert await grep(root, "x", engine, output="files") == ".hidden\nb"
    assert await grep(root, "x", engine, path="build", output="files") == "build/a"


async def test_binary_and_large_files_are_left_out(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """A22: a sparse file of 10 GB would be read; noise would be shown."""
    make_files(workspace, {"a": b"x\0", "b": "x"})
    with (workspace / "huge").open("wb") as file:
        file.truncate(10 * 1024**3)
    assert await grep(root, "x", engine) == (f"b:1:x\n[1 files over {limits.FILE_READ_BYTES} bytes were not searched]")


async def test_pipes_and_links_are_not_opened(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path, engine: dict[str, str]
) -> None:
    """A21 A22: a FIFO would hold the search for ever, a link show the user's keys."""
    os.mkfifo(workspace / "pipe")
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "directory").symlink_to(tmp_path)
    assert await grep(root, "SECRET", engine) == "No line matches."
    for path in ("link", "directory", "pipe"):
        with pytest.raises(ToolError, match="cannot be searched"):
            await grep(root, "SECRET", engine, path=path)


async def test_what_is_shown_is_bounded_and_says_so(
    root: WorkspaceRoot, workspace: Path, engine: dict[str, str]
) -> None:
    """One word that is everywhere would fill the context; or the model take a part for the whole."""
    make_files(workspace, {f"{name}": "x\n" * 100 for name in "abc"})
    assert (await grep(root, "x", engine, limit=101)).splitlines()[-2:] == [
        "b:1:x",
        "[there is more: use a narrower pattern, `path` or `include`, or a larger `limit`]",
    ]
    assert "there is more" not in await grep(root, "x", engine, limit=300)
    assert (await grep(root, "x", engine, limit=2, output="files")).splitlines()[:2] == ["a", "b"]
    make_files(workspace, {"long": ("y" * 290 + "\n") * 1_000})
    text = await grep(root, "y", engine, limit=1_000)
    assert len(text) <= limits.TOOL_OUTPUT_CHARACTERS and "there is more" in text


async def test_of_a_long_line_the_part_around_the_match_is_shown(root: WorkspaceRoot, workspace: Path) -> None:
    """The match would be in the part that was cut."""
    make_files(workspace, {"a": "x" * 5_000 + "here" + "x" * 5_000})
    text = await grep(root, "here")
    assert "here" in text and len(text) < limits.SEARCH_LINE_CHARACTERS + 50


async def test_a_name_cannot_look_like_another_result(root: WorkspaceRoot, workspace: Path) -> None:
    """A26: a file name with a line break would fake lines that are not there; a broken byte break the message."""
    make_files(workspace, {"a\nb:1:fake": "x"})
    make_files(workspace, {os.fsdecode(b"\xff"): "x"})
    assert (await grep(root, "x")).encode().splitlines() == [b"a\\x0ab:1:fake:1:x", "\ufffd:1:x".encode()]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"pattern": "(a"}, "not valid"),
        ({"pattern": "[[:alpha:]]"}, "Sets of sets"),
        ({"pattern": "(" * 495 + ")" * 495}, "nested too deeply"),
        ({"pattern": "a{99999999999}"}, "not valid"),
        ({"pattern": "a\nb"}, "line break"),
        ({"pattern": "\ud800"}, "Unicode"),
        ({"pattern": "x" * 1_001}, "pattern"),
        ({"pattern": "x", "include": "[a"}, "include"),
        ({"pattern": "x", "path": "missing"}, "missing cannot be searched: No such file"),
        ({"pattern": "x", "path": "../.."}, "outside the workspace"),
        ({"pattern": "x", "path": "a\0b"}, "NUL"),
        ({"pattern": "x", "path": "/etc"}, "outside the workspace"),
    ],
)
async def test_what_makes_no_sense_is_explained(root: WorkspaceRoot, arguments: dict[str, Any], word: str) -> None:
    """A20: the model would try the same again, or look outside."""
    with pytest.raises(ToolError, match=word):
        await grep(root, **arguments)


def test_the_ask_names_the_directory_and_the_pattern(root: WorkspaceRoot, workspace: Path) -> None:
    """I10: people would not see what is read."""
    tool: Tool = Grep(root, WITHOUT)
    ask = tool.plan({"pattern": "x", "path": f"{workspace}/src/"}, "call").ask
    assert (ask.action, ask.resource, ask.path, ask.params["pattern"]) == ("search", "src", f"{workspace}/src", "x")
    assert tool.read_only


async def test_a_ripgrep_inside_the_workspace_is_not_run(root: WorkspaceRoot, workspace: Path) -> None:
    """A23: a file the agent wrote would be executed by a tool that needs no permission, because PATH leads there."""
    make_files(workspace, {"bin/rg": f"#!/bin/sh\n: > {workspace}/executed\n", "a": "x"})
    (workspace / "bin" / "rg").chmod(stat.S_IRWXU)
    environment = {**WITHOUT, "PATH": f"{workspace}/bin"}
    assert await grep(root, "x", environment, path="a") == "a:1:x"
    assert not (workspace / "executed").exists()
