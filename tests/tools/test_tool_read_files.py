"""A file is changed only by a model that knows what is in it (A27)."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from windlass.tools.edit import Edit
from windlass.tools.file_tools import file_tools
from windlass.tools.files import WorkspaceRoot
from windlass.tools.multiedit import Multiedit
from windlass.tools.read_files import ReadFiles
from windlass.tools.view import View
from windlass.tools.write import Write
from windlass.wire.messages import Message, Part, ToolResult, ToolResultData
from windlass.wire.tools import Tool, ToolError, ToolOutput

REPLACEMENT = {"old_string": "one", "new_string": "two"}
CHANGES: dict[str, tuple[Callable[[WorkspaceRoot, ReadFiles], Tool], dict[str, Any]]] = {
    "edit": (Edit, REPLACEMENT),
    "multiedit": (Multiedit, {"edits": [REPLACEMENT]}),
    "write": (Write, {"content": "two"}),
}
every_change = pytest.mark.parametrize("change", CHANGES)


def plan(change: str, root: WorkspaceRoot, known: ReadFiles, path: str = "a") -> Any:
    tool, arguments = CHANGES[change]
    return tool(root, known).plan({"file_path": path, **arguments}, "call")


async def view(root: WorkspaceRoot, known: ReadFiles, **arguments: Any) -> ToolOutput:
    return await View(root, known).plan({"file_path": "a", **arguments}, "call").run()


def message(*results: ToolResultData) -> Message:
    parts: list[Part] = [ToolResult(result) for result in results]
    return Message("msg", "tool", "ses", parts, "", "", 0, 0)


def result(metadata: str, is_error: bool = False) -> ToolResultData:
    return ToolResultData("call", "view", "", metadata, is_error)


@every_change
def test_a_file_that_was_not_read_is_not_changed(root: WorkspaceRoot, workspace: Path, change: str) -> None:
    """A model would write over what it has never seen."""
    (workspace / "a").write_text("one")
    with pytest.raises(ToolError, match=r"You have not read a yet\. View it first"):
        plan(change, root, ReadFiles())


@every_change
async def test_a_file_that_was_viewed_is_changed(root: WorkspaceRoot, workspace: Path, change: str) -> None:
    """What an agent does all day."""
    (workspace / "a").write_text("one")
    known = ReadFiles()
    await view(root, known)
    await plan(change, root, known).run()
    assert (workspace / "a").read_text() == "two"


@every_change
async def test_a_file_that_changed_since_it_was_viewed_is_not_changed(
    root: WorkspaceRoot, workspace: Path, change: str
) -> None:
    """A27: what a person or a command has written since would be overwritten by an older idea of the file."""
    (workspace / "a").write_text("one")
    known = ReadFiles()
    await view(root, known)
    (workspace / "a").write_text("one, and theirs")
    with pytest.raises(ToolError, match=r"a has changed since you read it\. View it again"):
        plan(change, root, known)


@every_change
async def test_a_file_that_changes_while_people_are_asked_is_not_changed(
    root: WorkspaceRoot, workspace: Path, change: str
) -> None:
    """A27: the same, between the plan and the run."""
    (workspace / "a").write_text("one")
    known = ReadFiles()
    await view(root, known)
    planned = plan(change, root, known)
    (workspace / "a").write_text("one, and theirs")
    with pytest.raises(ToolError, match="changed since"):
        await planned.run()
    assert (workspace / "a").read_text() == "one, and theirs"


async def test_a_new_file_needs_no_reading_and_is_known_afterwards(root: WorkspaceRoot, workspace: Path) -> None:
    """The model would have to view what it has just written."""
    known = ReadFiles()
    await Write(root, known).plan({"file_path": "a", "content": "one"}, "call").run()
    await plan("edit", root, known).run()
    assert (workspace / "a").read_text() == "two"


async def test_an_edit_follows_an_edit_without_viewing(root: WorkspaceRoot, workspace: Path) -> None:
    """Every second call would be a view."""
    (workspace / "a").write_text("zero one")
    known = ReadFiles()
    await view(root, known)
    await Edit(root, known).plan({"file_path": "a", "old_string": "zero", "new_string": "nought"}, "call").run()
    await plan("edit", root, known).run()
    assert (workspace / "a").read_text() == "nought two"


async def test_a_part_of_a_file_counts_as_read(root: WorkspaceRoot, workspace: Path) -> None:
    """A long file could never be edited."""
    (workspace / "a").write_text("one\n" + "line\n" * 10)
    known = ReadFiles()
    await view(root, known, limit=1)
    plan("edit", root, known)


async def test_another_spelling_of_the_path_is_the_same_file(root: WorkspaceRoot, workspace: Path) -> None:
    """A model that views `./a` and edits the absolute path would be sent back."""
    (workspace / "a").write_text("one")
    known = ReadFiles()
    await View(root, known).plan({"file_path": "x/../a"}, "call").run()
    plan("edit", root, known, f"{workspace}/a")


async def test_what_an_earlier_run_read_is_known_by_its_results(root: WorkspaceRoot, workspace: Path) -> None:
    """After every prompt the model would have to view everything again."""
    (workspace / "a").write_text("one")
    output = await view(root, ReadFiles())
    tools = {tool.name: tool for tool in file_tools(root, [message(result(output.metadata))], {})}
    plan_of_edit = tools["edit"].plan({"file_path": "a", **REPLACEMENT}, "call")
    written = await plan_of_edit.run()
    # And what that run writes is known to the next.
    plan_of_write = Write(root, ReadFiles([message(result(written.metadata))]))
    await plan_of_write.plan({"file_path": "a", "content": "three"}, "call").run()
    assert (workspace / "a").read_text() == "three"


async def test_the_newest_result_counts(root: WorkspaceRoot, workspace: Path) -> None:
    """A file that was read twice would be judged by the first reading."""
    outputs = []
    for content in ("old", "one"):
        (workspace / "a").write_text(content)
        outputs.append(await view(root, ReadFiles()))
    in_order = [message(result(output.metadata)) for output in outputs]
    plan("edit", root, ReadFiles(in_order))
    with pytest.raises(ToolError, match="has changed since"):
        plan("edit", root, ReadFiles(in_order[::-1]))


async def test_a_failed_result_does_not_count(root: WorkspaceRoot, workspace: Path) -> None:
    """The model was told that it went wrong, and knows nothing of the file."""
    (workspace / "a").write_text("one")
    output = await view(root, ReadFiles())
    with pytest.raises(ToolError, match="You have not read"):
        plan("edit", root, ReadFiles([message(result(output.metadata, is_error=True))]))


@pytest.mark.parametrize(
    "metadata",
    ["", "no JSON", '{"files": 3}', '{"files": {"a": 1}}', '{"files": {"a": "abc"}}', '["files"]', '{"files": null}'],
)
def test_metadata_that_is_malformed_is_passed_over(root: WorkspaceRoot, workspace: Path, metadata: str) -> None:
    """One odd result of somebody else's tool would end every later run of the session."""
    (workspace / "a").write_text("one")
    with pytest.raises(ToolError, match="You have not read"):
        plan("edit", root, ReadFiles([message(result(metadata))]))


async def test_two_sessions_know_what_each_has_read(root: WorkspaceRoot, workspace: Path) -> None:
    """A sub-agent would edit what only its parent has seen."""
    (workspace / "a").write_text("one")
    one, other = ReadFiles(), ReadFiles()
    await view(root, one)
    plan("edit", root, one)
    with pytest.raises(ToolError, match="You have not read"):
        plan("edit", root, other)


async def test_the_metadata_names_the_digest_of_the_whole_content(root: WorkspaceRoot, workspace: Path) -> None:
    """The promise of the port: later runs and other executors rely on this key."""
    (workspace / "a").write_bytes(b"one\ntwo\n")
    output = await view(root, ReadFiles(), limit=1)
    digest = "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"
    assert msgspec.json.decode(output.metadata)["files"] == {"a": digest}


def test_what_another_tool_says_of_files_does_not_count() -> None:
    """A32: an MCP server could say that a file was read that the model has never seen."""
    told = msgspec.json.encode({"files": {"a": hashlib.sha256(b"one").hexdigest()}}).decode()
    for name in ("mcp_server_view", "bash", "fetch"):
        with pytest.raises(ToolError, match="not read a yet"):
            ReadFiles([message(ToolResultData("call", name, "", told, False))]).check("a", b"one")
    ReadFiles([message(result(told))]).check("a", b"one")
