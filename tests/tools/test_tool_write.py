"""write: what is shown is what is done, and nothing is overwritten unseen."""

import asyncio
import base64
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.tools.knowing import having_read
from windlass import limits
from windlass.tools.change import Change, written_file
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles
from windlass.tools.text import diff, shorten
from windlass.tools.write import Write
from windlass.wire.run_events import FileWritten
from windlass.wire.tools import Tool, ToolError, WrittenFile

# -- write ------------------------------------------------------------------------------------------------------------


async def test_a_file_is_written_and_its_version_kept(root: WorkspaceRoot, workspace: Path) -> None:
    """The session's file history would have a hole."""
    output = await Write(root, ReadFiles()).plan({"file_path": "a/b.txt", "content": "text\n"}, "call").run()
    assert (workspace / "a/b.txt").read_text() == "text\n"
    assert output.written == [WrittenFile(f"{workspace}/a/b.txt", "text\n", None)]


def test_planning_a_write_changes_nothing(root: WorkspaceRoot, workspace: Path) -> None:
    """I10: the file would be there before anyone said yes."""
    Write(root, ReadFiles()).plan({"file_path": "a/b", "content": "x"}, "call")
    assert list(workspace.iterdir()) == []


def test_the_ask_of_a_write_shows_the_change(root: WorkspaceRoot, workspace: Path) -> None:
    """People would approve what they cannot see."""
    (workspace / "a").write_text("one\ntwo\nthree\n")
    tool: Tool = Write(root, having_read(root, "a"))
    ask = tool.plan({"file_path": "a", "content": "one\n2\nthree\n"}, "call").ask
    assert (ask.action, ask.resource, ask.path) == ("write", "a", f"{workspace}/a")
    assert ask.params["diff"] == "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


async def test_a_file_that_changed_after_the_ask_is_not_overwritten(root: WorkspaceRoot, workspace: Path) -> None:
    """A27: a person's work between the asking and the doing would be lost."""
    (workspace / "a").write_text("old")
    plan = Write(root, having_read(root, "a")).plan({"file_path": "a", "content": "new"}, "call")
    (workspace / "a").write_text("theirs")
    with pytest.raises(ToolError, match="changed since"):
        await plan.run()
    assert (workspace / "a").read_text() == "theirs"


def test_git_internals_are_refused_before_anyone_is_asked(root: WorkspaceRoot) -> None:
    """A23: people would be asked for something that is never done."""
    with pytest.raises(ToolError, match="belongs to git"):
        Write(root, ReadFiles()).plan({"file_path": ".git/hooks/pre-commit", "content": "x"}, "call")


@pytest.mark.parametrize("content", ["\ud800", "x" * (limits.FILE_WRITE_BYTES + 1)], ids=["surrogate", "too large"])
def test_content_that_cannot_be_written_is_refused(root: WorkspaceRoot, content: str) -> None:
    """It would fail after the approval, or fill the disk."""
    with pytest.raises(ToolError):
        Write(root, having_read(root, "a")).plan({"file_path": "a", "content": content}, "call")


# -- the diff people see ----------------------------------------------------------------------------------------------


def test_a_diff_has_the_line_numbers_of_the_file() -> None:
    """People would look for the change in the wrong place."""
    before = "".join(f"{number}\n" for number in range(1, 101))
    assert "@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+fifty\n" in diff("a", before, before.replace("50\n", "fifty\n"))


def test_a_diff_of_a_huge_change_is_bounded_in_size_and_time() -> None:
    """A comparison that takes long keeps a thread of the server, and with it everyone who wants the interpreter."""
    before = "".join(f"{number % 7}\n" for number in range(200_000))
    after = "".join(f"{number % 5}\n" for number in range(200_000))
    began = time.thread_time()  # what it computes, however little of the machine it gets
    text = diff("a", before, after)
    assert (len(text) < limits.DIFF_CHARACTERS + 100, time.thread_time() - began < 2.0) == (True, True)


def test_a_missing_newline_at_the_end_is_shown() -> None:
    """The removed and the added line would run together."""
    assert diff("a", "x", "y") == (
        "--- a\n+++ a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"
    )


def test_a_shortened_text_says_how_much_is_missing() -> None:
    """The model would take a part for the whole."""
    assert shorten("a" * 10 + "b" * 10, 4) == "aa\n[... 16 characters left out ...]\nbb"


@pytest.mark.parametrize("unit", ["\n", '"', "\x01", "a,b\n", "\u00e9"])
def test_what_is_kept_of_the_largest_file_fits_into_one_message(unit: str) -> None:
    """I22: a worker that wrote it could not say so: the file is changed, the run fails and nothing can be undone."""
    content = (unit * limits.FILE_WRITE_BYTES).encode()[: limits.FILE_WRITE_BYTES // 2 * 2]
    kept = written_file("/w/a", Change("a", content, content[:-2]))
    event = FileWritten(kept.path, kept.content, kept.before, kept.encoding, kept.before_encoding)
    assert len(msgspec.json.encode(event)) < limits.LINK_FRAME_BYTES - limits.WORKER_FRAME_OVERHEAD_BYTES
    assert isinstance(kept.before, str)
    was = base64.b64decode(kept.before) if kept.before_encoding else kept.before.encode()
    assert was == content


@pytest.mark.parametrize("before", ["one", None])
async def test_a_write_that_is_cancelled_has_changed_nothing(
    root: WorkspaceRoot, workspace: Path, before: str | None
) -> None:
    """I3: the file would change after the run has ended, and no version be kept to undo it by."""
    if before is not None:
        (workspace / "a").write_text(before)
    plan = Write(root, having_read(root, "a")).plan({"file_path": "a", "content": "two"}, "call")
    with locked(workspace):
        task = asyncio.create_task(plan.run())
        while not root._replacing.locked():  # noqa: ASYNC110 (no event tells that a thread waits for its turn)
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.get_running_loop().shutdown_default_executor()  # nothing is left that could still write
    assert ((workspace / "a").read_text() if before is not None else os.listdir(workspace)) == (before or [])


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def test_the_digest_of_a_large_file_is_made_where_it_is_written() -> None:
    """The server would hash megabytes on its event loop, and hold up everyone."""
    large = b"x" * (limits.FILE_DIGEST_BYTES + 1)
    kept = written_file("/a", Change("a", b"small", large, ""))
    assert (kept.digest, kept.before_digest) == (hashlib.sha256(large).hexdigest(), "")
