"""A planned change of one file: what `write` and `edit` have in common.

The plan holds the content before and after. `run` writes only if the file still is what it was when the change was
planned and shown: what was approved is what is executed (I10, A27).
"""

import asyncio
import base64
import os
from dataclasses import dataclass

import msgspec

from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.text import diff
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolError, ToolOutput, WrittenFile


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None for a file that does not exist yet."""

    path: str
    before: bytes | None
    after: bytes

    @property
    def diff(self) -> str:
        return diff(self.path, _text(self.before or b""), _text(self.after))


def encode(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"`{field}` contains characters that are not valid Unicode.") from None


def plan_change(root: WorkspaceRoot, change: Change, *, tool_name: str, tool_call_id: str, action: str) -> "ChangePlan":
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
    return ChangePlan(ask, root, change, shown)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    ask: PermissionAsk
    root: WorkspaceRoot
    change: Change
    shown: str

    async def run(self) -> ToolOutput:
        change = self.change
        await asyncio.to_thread(self.root.replace_bytes, change.path, change.before, change.after)
        what = "Created" if change.before is None else "Wrote"
        return ToolOutput(
            f"{what} {change.path} ({len(change.after)} bytes).",
            metadata=msgspec.json.encode({"file_path": change.path, "diff": self.shown}).decode(),
            written=[written_file(self.ask.path, change)],
        )


def written_file(path: str, change: Change) -> WrittenFile:
    """The change as it is kept: bytes that are no text must come back as they were when it is undone."""
    content, encoding = _kept(change.after)
    before, before_encoding = (None, "") if change.before is None else _kept(change.before)
    return WrittenFile(path, content, before, encoding, before_encoding)


def _kept(content: bytes) -> tuple[str, str]:
    try:
        return content.decode(), ""
    except UnicodeDecodeError:
        return base64.b64encode(content).decode(), "base64"


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
