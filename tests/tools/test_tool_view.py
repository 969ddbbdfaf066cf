"""view and ls: what an agent sees of the workspace, bounded."""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.ls import Ls
from windlass.tools.read_files import ReadFiles
from windlass.tools.view import View
from windlass.wire.tools import Tool, ToolError


async def view(root: WorkspaceRoot, **arguments: Any) -> str:
    return (await View(root, ReadFiles()).plan(arguments, "call").run()).content


async def ls(root: WorkspaceRoot, **arguments: Any) -> str:
    return (await Ls(root).plan(arguments, "call").run()).content


# -- view -------------------------------------------------------------------------------------------------------------


async def test_lines_are_numbered(root: WorkspaceRoot, workspace: Path) -> None:
    """The model could not say which line it means."""
    (workspace / "a.py").write_text("one\ntwo\n")
    assert await view(root, file_path="a.py") == "     1\tone\n     2\ttwo"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", ["a", "a\n", "\n", "\n\n", "a\n\nb", "a\nb\n", "a\n\n"])
async def test_the_lines_are_those_of_the_file(root: WorkspaceRoot, workspace: Path, text: str, end: str) -> None:
    """A line too many or too few, and every number after it is wrong."""
    (workspace / "a").write_bytes(text.replace("\n", end).encode())
    expected = [f"{number:6}\t{line}" for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)]
    shown = [line for line in (await view(root, file_path="a")).split("\n") if not line.startswith("[its lines")]
    assert shown == expected


def test_a_million_lines_do_not_hold_up_the_loop(root: WorkspaceRoot, workspace: Path) -> None:
    """A thread that makes a million strings in one step lets nobody else have a turn meanwhile."""
    (workspace / "a").write_text("ab\n" * 1_000_000)
    text = (workspace / "a").read_text()
    began = time.thread_time()
    text.split("\n")
    split_seconds = time.thread_time() - began
    plan = View(root, ReadFiles()).plan({"file_path": "a"}, "call")
    began = time.thread_time()
    assert "[lines 1 to 2000 of 1000000;" in plan._view().content
    assert time.thread_time() - began < split_seconds


async def test_a_stretch_of_lines_can_be_viewed_and_says_how_to_go_on(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would take a part for the whole."""
    (workspace / "a").write_text("1\n2\n3\n4\n5\n")
    text = await view(root, file_path="a", offset=2, limit=2)
    assert text == "     2\t2\n     3\t3\n[lines 2 to 3 of 5; go on with offset=4]"


async def test_what_is_shown_is_bounded_by_characters(root: WorkspaceRoot, workspace: Path) -> None:
    """One file could fill the context window."""
    (workspace / "a").write_text("x" * 1000 + "\n" + ("y" * 1000 + "\n") * 1000)
    text = await view(root, file_path="a")
    assert len(text) < limits.TOOL_OUTPUT_CHARACTERS + 100
    assert "go on with offset=30]" in text


async def test_a_very_long_line_is_cut_and_says_so(root: WorkspaceRoot, workspace: Path) -> None:
    """A line of minified code would be all that fits."""
    (workspace / "a").write_text("x" * 5000)
    assert (await view(root, file_path="a")).endswith(
        "x[... 3000 more characters in this line; `grep` shows the part around a match]"
    )


async def test_a_binary_file_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would be sent pages of noise."""
    (workspace / "a").write_bytes(b"\x89PNG\0\0")
    with pytest.raises(ToolError, match="not a text file"):
        await view(root, file_path="a")


async def test_bytes_that_are_not_utf8_are_pointed_out(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would copy the replacement character into an edit, which then does not fit."""
    (workspace / "a").write_bytes("für\n".encode("latin-1"))
    assert "not UTF-8" in await view(root, file_path="a")


async def test_an_empty_file_is_said_to_be_empty(root: WorkspaceRoot, workspace: Path) -> None:
    """An empty answer looks like a tool that is broken."""
    (workspace / "a").touch()
    assert await view(root, file_path="a") == "a is empty."


async def test_an_offset_after_the_end_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would believe that the file ends where it does not."""
    (workspace / "a").write_text("1\n")
    with pytest.raises(ToolError, match="has 1 lines"):
        await view(root, file_path="a", offset=2)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({}, "file_path"), ({"file_path": 1}, "file_path"), ({"file_path": "a", "line": 1}, "line")],
)
def test_bad_arguments_name_the_field(root: WorkspaceRoot, arguments: dict[str, Any], field: str) -> None:
    """The model would try the same again."""
    with pytest.raises(ToolError, match=field):
        View(root, ReadFiles()).plan(arguments, "call")


def test_the_ask_names_the_exact_file(root: WorkspaceRoot, workspace: Path) -> None:
    """I10: a grant for one spelling of a path would not be the grant for the file."""
    ask = View(root, ReadFiles()).plan({"file_path": f"{workspace}/a/../b"}, "call").ask
    assert (ask.tool_call_id, ask.action, ask.resource, ask.path) == ("call", "read", "b", f"{workspace}/b")


def test_the_schema_is_one_plain_object(root: WorkspaceRoot) -> None:
    """Providers refuse a schema whose top is a reference."""
    tool: Tool = View(root, ReadFiles())
    assert (tool.schema["type"], tool.schema["required"]) == ("object", ["file_path"])
    assert "$ref" not in json.dumps(tool.schema)


PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0",
    "image/jpeg": b"\xff\xd8\xff\xe0\0",
    "image/gif": b"GIF89a\0",
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 ",
}


@pytest.mark.parametrize("mime_type", PICTURES)
async def test_a_picture_is_shown_as_one(root: WorkspaceRoot, workspace: Path, mime_type: str) -> None:
    """The model could not look at a screenshot; the name says nothing, the content does."""
    (workspace / "a.txt").write_bytes(PICTURES[mime_type])
    output = await View(root, ReadFiles()).plan({"file_path": "a.txt"}, "call").run()
    assert (output.mime_type, base64.b64decode(output.data)) == (mime_type, PICTURES[mime_type])


async def test_a_picture_that_is_too_large_is_refused(root: WorkspaceRoot, workspace: Path) -> None:
    """The provider would refuse the whole conversation, again and again."""
    (workspace / "a").write_bytes(PICTURES["image/png"] + bytes(limits.VIEW_IMAGE_BYTES))
    with pytest.raises(ToolError, match="Make a smaller copy"):
        await view(root, file_path="a")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"%PDF-1.7\0", "pdftotext"),
        (b"PK\x03\x04\0", "unzip -l"),
        ("hi".encode("utf-16"), "iconv"),
        (b"\0", "Use bash"),
    ],
)
async def test_other_binaries_are_refused_with_what_helps(
    root: WorkspaceRoot, workspace: Path, content: bytes, word: str
) -> None:
    """The model would not know what else to try."""
    (workspace / "a").write_bytes(content)
    with pytest.raises(ToolError, match=word):
        await view(root, file_path="a")


async def test_line_ends_of_windows_are_not_shown_but_told(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would copy the invisible character into its edits, or leave it out and not be understood."""
    (workspace / "a").write_bytes(b"one\r\ntwo\r\n")
    assert await view(root, file_path="a") == (
        "     1\tone\n     2\ttwo\n[its lines end with \\r\\n; `edit` keeps that]"
    )


# -- ls ---------------------------------------------------------------------------------------------------------------


async def test_a_directory_is_shown_as_a_tree(root: WorkspaceRoot, workspace: Path) -> None:
    """An agent could not find its way."""
    (workspace / "src" / "deep" / "deeper").mkdir(parents=True)
    (workspace / "src" / "main.py").touch()
    (workspace / "link").symlink_to("/etc")
    assert await ls(root) == "./\n  link@\n  src/\n    deep/\n    main.py"


async def test_the_depth_can_be_chosen(root: WorkspaceRoot, workspace: Path) -> None:
    """Large trees need a shallow look, small ones a deep one."""
    (workspace / "a" / "b" / "c").mkdir(parents=True)
    assert [(await ls(root, depth=1)).count("/"), (await ls(root, depth=3)).count("/")] == [2, 4]


async def test_what_is_listed_is_bounded_and_says_so(
    root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of a million files would fill memory and context."""
    monkeypatch.setattr(limits, "DIRECTORY_ENTRIES", 3)
    for name in "abcde":
        (workspace / name).touch()
    assert (await ls(root)).splitlines()[1:4] == ["  a", "  b", "  c"]
    assert "cut after 3 entries" in await ls(root)


async def test_a_cut_costs_the_deepest_first(
    root: WorkspaceRoot, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One crowded directory at the beginning of the alphabet would hide all the others."""
    monkeypatch.setattr(limits, "DIRECTORY_ENTRIES", 3)
    (workspace / "a").mkdir()
    (workspace / "z").touch()
    for name in "1234":
        (workspace / "a" / name).touch()
    assert "  z" in (await ls(root)).splitlines()


async def test_heavy_directories_are_named_but_not_opened(root: WorkspaceRoot, workspace: Path) -> None:
    """`node_modules` would be all that fits."""
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "left-pad").touch()
    assert "left-pad" not in await ls(root)
    assert "left-pad" in await ls(root, path="node_modules")


async def test_a_name_cannot_look_like_another_entry(root: WorkspaceRoot, workspace: Path) -> None:
    """A26: a file name with a line break would fake files that are not there; a broken byte would break the JSON."""
    (workspace / "a\n  fake").touch()
    os.mknod(os.fsencode(workspace) + b"/\xff")
    assert (await ls(root)).encode().splitlines()[1:] == [b"  a\\x0a  fake", "  \ufffd".encode()]


async def test_an_empty_directory_is_said_to_be_empty(root: WorkspaceRoot) -> None:
    """An empty answer looks like a tool that is broken."""
    assert await ls(root) == "./\n  (empty)"


async def test_a_missing_directory_is_refused(root: WorkspaceRoot) -> None:
    """The model would take it for an empty one."""
    with pytest.raises(ToolError, match="No such file"):
        await ls(root, path="missing")


def test_the_ask_of_a_list_names_the_directory(root: WorkspaceRoot, workspace: Path) -> None:
    """I10."""
    ask = Ls(root).plan({}, "call").ask
    assert (ask.action, ask.resource, ask.path) == ("list", ".", str(workspace))
