"""write and edit: what is shown is what is done."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from windlass import limits
from windlass.tools.edit import Edit
from windlass.tools.files import WorkspaceRoot
from windlass.tools.text import diff, shorten
from windlass.tools.write import Write
from windlass.wire.tools import Tool, ToolError, WrittenFile


async def edit(root: WorkspaceRoot, **arguments: Any) -> str:
    return (await Edit(root).plan(arguments, "call").run()).content


# -- write ------------------------------------------------------------------------------------------------------------


async def test_a_file_is_written_and_its_version_kept(root: WorkspaceRoot, workspace: Path) -> None:
    """The session's file history would have a hole."""
    output = await Write(root).plan({"file_path": "a/b.txt", "content": "text\n"}, "call").run()
    assert (workspace / "a/b.txt").read_text() == "text\n"
    assert output.written == [WrittenFile(f"{workspace}/a/b.txt", "text\n", None)]


def test_planning_a_write_changes_nothing(root: WorkspaceRoot, workspace: Path) -> None:
    """I10: the file would be there before anyone said yes."""
    Write(root).plan({"file_path": "a/b", "content": "x"}, "call")
    assert list(workspace.iterdir()) == []


def test_the_ask_of_a_write_shows_the_change(root: WorkspaceRoot, workspace: Path) -> None:
    """People would approve what they cannot see."""
    (workspace / "a").write_text("one\ntwo\nthree\n")
    tool: Tool = Write(root)
    ask = tool.plan({"file_path": "a", "content": "one\n2\nthree\n"}, "call").ask
    assert (ask.action, ask.resource, ask.path) == ("write", "a", f"{workspace}/a")
    assert ask.params["diff"] == "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


async def test_a_file_that_changed_after_the_ask_is_not_overwritten(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: a person's work between the asking and the doing would be lost."""
    (workspace / "a").write_text("old")
    plan = Write(root).plan({"file_path": "a", "content": "new"}, "call")
    (workspace / "a").write_text("theirs")
    with pytest.raises(ToolError, match="changed since"):
        await plan.run()
    assert (workspace / "a").read_text() == "theirs"


def test_git_internals_are_refused_before_anyone_is_asked(root: WorkspaceRoot) -> None:
    """A23: people would be asked for something that is never done."""
    with pytest.raises(ToolError, match="belongs to git"):
        Write(root).plan({"file_path": ".git/hooks/pre-commit", "content": "x"}, "call")


@pytest.mark.parametrize("content", ["\ud800", "x" * (limits.FILE_WRITE_BYTES + 1)], ids=["surrogate", "too large"])
def test_content_that_cannot_be_written_is_refused(root: WorkspaceRoot, content: str) -> None:
    """It would fail after the approval, or fill the disk."""
    with pytest.raises(ToolError):
        Write(root).plan({"file_path": "a", "content": content}, "call")


# -- edit -------------------------------------------------------------------------------------------------------------


async def test_an_exact_piece_is_replaced(root: WorkspaceRoot, workspace: Path) -> None:
    """What an agent does all day."""
    (workspace / "a").write_text("a = 1\nb = 2\n")
    await edit(root, file_path="a", old_string="b = 2", new_string="b = 3")
    assert (workspace / "a").read_text() == "a = 1\nb = 3\n"


async def test_bytes_that_are_not_touched_stay_as_they_are(root: WorkspaceRoot, workspace: Path) -> None:
    """An edit would rewrite a whole file with other line ends or in another encoding."""
    (workspace / "a").write_bytes(b"\xff\xfe caf\xe9\r\nx\r\n")
    await edit(root, file_path="a", old_string="x", new_string="ü")
    assert (workspace / "a").read_bytes() == b"\xff\xfe caf\xe9\r\n\xc3\xbc\r\n"


async def test_every_occurrence_is_replaced_only_when_asked_for(root: WorkspaceRoot, workspace: Path) -> None:
    """The wrong one of two would be changed without a word."""
    (workspace / "a").write_text("x x x")
    with pytest.raises(ToolError, match="occurs 3 times"):
        await edit(root, file_path="a", old_string="x", new_string="y")
    await edit(root, file_path="a", old_string="x", new_string="y", replace_all=True)
    assert (workspace / "a").read_text() == "y y y"


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("a\r\nb\r\n", "a\nb", r"end with \\r\\n"),
        ("if x:\n        y()\n", "if x:\n    y()", "other spaces"),
        ("a", "b", "View the file"),
    ],
    ids=["line ends", "spaces", "nothing alike"],
)
async def test_a_piece_that_is_not_there_is_explained(
    root: WorkspaceRoot, workspace: Path, content: str, old: str, hint: str
) -> None:
    """The model would try the same again."""
    (workspace / "a").write_bytes(content.encode())
    with pytest.raises(ToolError, match=hint):
        await edit(root, file_path="a", old_string=old, new_string="c")


async def test_an_empty_old_string_creates_a_file(root: WorkspaceRoot, workspace: Path) -> None:
    """Models know this from elsewhere."""
    await edit(root, file_path="a", old_string="", new_string="text")
    assert (workspace / "a").read_text() == "text"


async def test_an_empty_old_string_never_touches_an_existing_file(root: WorkspaceRoot, workspace: Path) -> None:
    """A file would be replaced by an edit that was meant to create."""
    (workspace / "a").write_text("old")
    with pytest.raises(ToolError, match="exists"):
        await edit(root, file_path="a", old_string="", new_string="text")


async def test_editing_a_missing_file_is_refused(root: WorkspaceRoot) -> None:
    """The model would not know that it has the wrong path."""
    with pytest.raises(ToolError, match="There is no file a"):
        await edit(root, file_path="a", old_string="x", new_string="y")


async def test_an_edit_of_a_file_that_changed_after_the_ask_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: the approved diff is not the one that would be made."""
    (workspace / "a").write_text("one two")
    plan = Edit(root).plan({"file_path": "a", "old_string": "one", "new_string": "1"}, "call")
    (workspace / "a").write_text("one three")
    with pytest.raises(ToolError, match="changed since"):
        await plan.run()


async def test_of_two_edits_planned_at_once_the_second_is_told(root: WorkspaceRoot, workspace: Path) -> None:
    """Two sub-agents on one file: the first one's edit would vanish."""
    (workspace / "a").write_text("one two")
    plans = [
        Edit(root).plan({"file_path": "a", "old_string": old, "new_string": "x"}, "call") for old in ("one", "two")
    ]
    results = await asyncio.gather(*(plan.run() for plan in plans), return_exceptions=True)
    assert sorted(isinstance(result, ToolError) for result in results) == [False, True]


def test_an_edit_that_would_explode_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """A32: a short piece replaced everywhere by a long one would fill the memory."""
    (workspace / "a").write_text("x" * 1_000_000)
    arguments = {"file_path": "a", "old_string": "x", "new_string": "y" * 1_000_000, "replace_all": True}
    with pytest.raises(ToolError, match="would have 1000000000000 bytes"):
        Edit(root).plan(arguments, "call")


# -- the diff people see ----------------------------------------------------------------------------------------------


def test_a_diff_has_the_line_numbers_of_the_file() -> None:
    """People would look for the change in the wrong place."""
    before = "".join(f"{number}\n" for number in range(1, 101))
    assert "@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+fifty\n" in diff("a", before, before.replace("50\n", "fifty\n"))


def test_a_diff_of_a_huge_change_is_bounded_in_size_and_time() -> None:
    """A plan is made on the event loop: a slow comparison would freeze every client."""
    before = "".join(f"{number % 7}\n" for number in range(200_000))
    after = "".join(f"{number % 5}\n" for number in range(200_000))
    began = time.monotonic()
    text = diff("a", before, after)
    assert (len(text) < limits.DIFF_CHARACTERS + 100, time.monotonic() - began < 2.0) == (True, True)


def test_a_missing_newline_at_the_end_is_shown() -> None:
    """The removed and the added line would run together."""
    assert diff("a", "x", "y") == (
        "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"
    )


def test_a_shortened_text_says_how_much_is_missing() -> None:
    """The model would take a part for the whole."""
    assert shorten("a" * 10 + "b" * 10, 4) == "aa\n[... 16 characters left out ...]\nbb"
