"""Every file tool against every path that leads elsewhere, or to what is no file (A20-A23)."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.tools.searching import WITHOUT
from windlass.tools.file_tools import file_tools
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import ToolError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "view": {"file_path": ""},
    "ls": {"path": ""},
    "glob": {"pattern": "*", "path": ""},
    "grep": {"pattern": "SECRET", "path": ""},
    "edit": {"file_path": "", "old_string": "SECRET", "new_string": "x"},
    "multiedit": {"file_path": "", "edits": [{"old_string": "SECRET", "new_string": "x"}]},
    "write": {"file_path": "", "content": "x"},
}
READING = ["view", "ls", "glob", "grep"]
WRITING = ["edit", "multiedit", "write"]


async def use(root: WorkspaceRoot, name: str, path: str) -> str:
    tool = next(tool for tool in file_tools(root, [], WITHOUT) if tool.name == name)
    given = {key: path if value == "" else value for key, value in ARGUMENTS[name].items()}
    return (await tool.plan(given, "call").run()).content


def test_the_table_has_every_tool(root: WorkspaceRoot) -> None:
    """A new tool would go untested."""
    tools = file_tools(root, [], WITHOUT)
    assert {tool.name for tool in tools} == set(ARGUMENTS)
    assert [tool.name for tool in tools if tool.read_only] == READING


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize(
    "path",
    ["../secret", "a/../../secret", "/etc/passwd", "//etc/passwd", "a\0b", "x" * 5_000, "\ud800", "link", "up/secret"],
    ids=["dots", "inner dots", "absolute", "two slashes", "NUL", "overlong", "surrogate", "link", "link above"],
)
async def test_a_path_out_of_the_workspace_is_refused(
    root: WorkspaceRoot, workspace: Path, tmp_path: Path, name: str, path: str
) -> None:
    """A20 A21: a model that was talked into it would read or overwrite what is not the project's."""
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "up").symlink_to("..")
    with pytest.raises(ToolError):
        await use(root, name, path)
    assert (tmp_path / "secret").read_text() == "SECRET"


@pytest.mark.parametrize("path", ["%2e%2e%2fsecret", "..\\secret", "C:\\secret", "..%00/secret", "\u2025/secret"])
async def test_what_only_looks_like_a_way_out_is_an_ordinary_name(
    root: WorkspaceRoot, workspace: Path, path: str
) -> None:
    """A20: nothing is decoded here, so nothing can come out of it."""
    await use(root, "write", path)
    assert [name for _, _, names in os.walk(workspace) for name in names] == [path.rpartition("/")[2]]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # as /dev/zero
    except PermissionError:
        pytest.skip("only root may make a device")


def directory(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)


def link_inside(path: Path) -> None:
    (path.parent / "other").write_text("SECRET")
    path.symlink_to("other")


def read_only(path: Path) -> None:
    path.write_text("SECRET")
    path.chmod(0o444)


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize("kind", [pipe, device, directory, huge, link_inside, read_only])
async def test_what_is_no_plain_file_is_refused_before_anyone_is_asked(
    root: WorkspaceRoot, workspace: Path, name: str, kind: Callable[[Path], None]
) -> None:
    """A21 A22: people would be asked for what is never done; or it be done, to something else."""
    kind(workspace / "target")
    before = os.lstat(workspace / "target")
    tools = {tool.name: tool for tool in file_tools(root, [], WITHOUT)}
    with suppress(ToolError):
        await tools["view"].plan({"file_path": "target"}, "call").run()  # not having read it is not the reason
    given = {key: "target" if value == "" else value for key, value in ARGUMENTS[name].items()}
    with pytest.raises(ToolError, match=r"a directory|pipe|larger than|symlink|read-only"):
        tools[name].plan(given, "call")
    after = os.lstat(workspace / "target")
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)


@pytest.mark.parametrize("kind", [pipe, device, directory, huge])
async def test_what_cannot_be_viewed_is_refused(
    root: WorkspaceRoot, workspace: Path, kind: Callable[[Path], None]
) -> None:
    """A22: a thread would be held for ever, or memory filled."""
    kind(workspace / "target")
    with pytest.raises(ToolError):
        await use(root, "view", "target")


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.parametrize(
    "path", [".git/config", ".GIT/hooks/x", "a/.Git/x", ".git", "git~1/x", ".git./x", ".g\u200bit/x"]
)
async def test_what_belongs_to_git_is_not_written(root: WorkspaceRoot, workspace: Path, name: str, path: str) -> None:
    """A23: a hook is code that runs with the user's next commit; file systems fold case and more."""
    with pytest.raises(ToolError, match="belongs to git"):
        await use(root, name, path)
    assert os.listdir(workspace) == []


@pytest.mark.parametrize("name", ["edit", "multiedit"])
async def test_a_name_in_another_case_is_another_file(root: WorkspaceRoot, workspace: Path, name: str) -> None:
    """A20: `Readme` would be changed by whoever has read `README`."""
    (workspace / "README").write_text("SECRET")
    with pytest.raises(ToolError, match="There is no file Readme"):
        await use(root, name, "Readme")
