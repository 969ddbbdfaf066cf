"""A planned change of one file: what `write`, `edit` and `multiedit` have in common.

Only a file that the model has read and that has not changed since is changed (`read_files.py`). The plan holds the
content before and after. `run` writes only if the file still is what it was when the change was planned and shown: what
was approved is what is executed (I10, A27).
"""

import asyncio
import base64
import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles
from windlass.tools.text import diff
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolError, ToolOutput, WrittenFile


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None for a file that does not exist yet."""

    path: str
    before: bytes | None
    after: bytes
    note: str = ""  # what the model is told beside that it was done

    @property
    def diff(self) -> str:
        return diff(self.path, _text(self.before or b""), _text(self.after))


def encode(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"`{field}` contains characters that are not valid Unicode.") from None


def current_content(root: WorkspaceRoot, known: ReadFiles, path: str) -> tuple[str, bytes | None]:
    """The path below the root and what is there now (None: nothing), if the model may change it; else ToolError."""
    inside = root.check_writable(path)
    content = root.read_to_change(inside)
    known.check(inside, content)
    return inside, content


def plan_change(
    root: WorkspaceRoot, known: ReadFiles, change: Change, *, tool_name: str, tool_call_id: str, action: str
) -> "ChangePlan":
    if len(change.after) > limits.FILE_WRITE_BYTES:
        raise ToolError(
            f"The file would have {len(change.after)} bytes; at most {limits.FILE_WRITE_BYTES} are possible."
        )
    verb = "Create" if change.before is None else "Change" if action == "edit" else "Replace"
    shown = change.diff
    ask = PermissionAsk(
        tool_call_id=tool_call_id,
        tool_name=tool_name,
        action=action,
        description=f"{verb} {change.path}",
        path=os.path.join(root.path, change.path),
        resource=change.path,
        params={"file_path": change.path, "diff": shown, "bytes": len(change.after)},
        confined=True,
    )
    return ChangePlan(ask, root, known, change, shown)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    ask: PermissionAsk
    root: WorkspaceRoot
    known: ReadFiles
    change: Change
    shown: str

    async def run(self) -> ToolOutput:
        """Do it. A call that is cancelled meanwhile has changed nothing when this is over."""
        writing = asyncio.ensure_future(asyncio.to_thread(self._write))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            # A thread cannot be stopped: the file would change after the run has ended, with no version to undo it by.
            await asyncio.wait({asyncio.ensure_future(self._take_back(writing))})
            raise

    async def _take_back(self, writing: "asyncio.Future[ToolOutput]") -> None:
        await asyncio.wait({writing})
        if writing.exception() is None:
            change = self.change
            with suppress(ToolError):  # somebody has written something else since; that stays
                await asyncio.to_thread(self.root.replace_bytes, change.path, change.after, change.before)

    def _write(self) -> ToolOutput:
        change = self.change
        self.root.replace_bytes(change.path, change.before, change.after)
        what = "Created" if change.before is None else "Wrote"
        done = f"{what} {change.path} ({len(change.after)} bytes)."
        files = self.known.note(change.path, change.after)
        metadata = {"file_path": change.path, "diff": self.shown, "files": files}
        return ToolOutput(
            f"{done} {change.note}" if change.note else done,
            metadata=msgspec.json.encode(metadata).decode(),
            written=[written_file(self.ask.path, change)],
        )


def written_file(path: str, change: Change) -> WrittenFile:
    """The change as it is kept: bytes that are no text must come back as they were when it is undone.

    Both contents together fit into one message between processes, whatever is in them.
    """
    content, encoding = _kept(change.after)
    before, before_encoding = (None, "") if change.before is None else _kept(change.before)
    digests = _digest(change.after), _digest(change.before or b"")
    return WrittenFile(path, content, before, encoding, before_encoding, *digests)


def _digest(content: bytes) -> str:
    """Of a large content, here in a thread: whoever keeps it would hold everyone up with it."""
    return hashlib.sha256(content).hexdigest() if len(content) > limits.FILE_DIGEST_BYTES else ""


def _kept(content: bytes) -> tuple[str, str]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    # A large text of little but quotes and line breaks would be several times as long as JSON.
    is_long = len(content) > limits.MIB and len(msgspec.json.encode(text)) > len(content) * 4 // 3
    if is_long or (content and not text):
        return base64.b64encode(content).decode(), "base64"
    return text, ""


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
