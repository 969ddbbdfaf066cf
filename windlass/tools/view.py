"""`view`: read a text file, with line numbers."""

import asyncio
import os
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import FileRoot, ToolError, ToolOutput


class ViewArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]
    offset: Annotated[int, Meta(ge=0, description="Number of the first line to show; the first line is 1")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines to show")] = limits.VIEW_LINES


class View:
    name = "view"
    description = (
        "Read a text file of the workspace. Each line comes as its number, a tab and its text; neither number nor tab "
        f"is part of the file. Shows {limits.VIEW_LINES} lines from `offset` on unless `limit` says otherwise, and "
        "says when there is more. Cannot show binary files or directories; use `ls` for those."
    )
    schema = schema_of(ViewArguments)
    read_only = True

    def __init__(self, root: FileRoot) -> None:
        self._root = root

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "ViewPlan":
        wanted = read_arguments(arguments, ViewArguments)
        path = self._root.relative(wanted.file_path)
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="read",
            description=f"Read {path}",
            path=os.path.join(self._root.path, path),
            resource=path,
            params={"file_path": path, "offset": wanted.offset, "limit": wanted.limit},
            confined=True,
        )
        return ViewPlan(ask, self._root, path, max(1, wanted.offset), wanted.limit)


@dataclass(frozen=True, slots=True)
class ViewPlan:
    ask: PermissionAsk
    root: FileRoot
    path: str
    first: int
    limit: int

    async def run(self) -> ToolOutput:
        return await asyncio.to_thread(self._view)

    def _view(self) -> ToolOutput:
        content = self.root.read_bytes(self.path, limits.FILE_READ_BYTES)
        if b"\0" in content:
            raise ToolError(f"{self.path} is not a text file ({len(content)} bytes of binary data).")
        text = content.decode("utf-8", "replace")
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()  # what follows the last newline is not a line
        if not lines:
            return ToolOutput(f"{self.path} is empty.")
        if self.first > len(lines):
            raise ToolError(f"{self.path} has {len(lines)} lines; offset {self.first} is after its end.")
        shown = _numbered(lines[self.first - 1 : self.first - 1 + self.limit], self.first)
        last = self.first + len(shown) - 1
        if last < len(lines):
            shown.append(f"[lines {self.first} to {last} of {len(lines)}; go on with offset={last + 1}]")
        if text.encode() != content:
            shown.append("[some of its bytes are not UTF-8 and are shown as \ufffd]")
        return ToolOutput("\n".join(shown), metadata=_metadata(self.path, self.first, last, len(lines)))


def _numbered(lines: list[str], first: int) -> list[str]:
    """As many lines as a model is shown at most; at least one."""
    shown: list[str] = []
    room = limits.TOOL_OUTPUT_CHARACTERS
    for number, line in enumerate(lines, first):
        entry = f"{number:6}\t{_bounded(line)}"
        room -= len(entry) + 1
        if room < 0 and shown:
            break
        shown.append(entry)
    return shown


def _bounded(line: str) -> str:
    if len(line) <= limits.VIEW_LINE_CHARACTERS:
        return line
    rest = len(line) - limits.VIEW_LINE_CHARACTERS
    return f"{line[: limits.VIEW_LINE_CHARACTERS]}[... {rest} more characters in this line]"


def _metadata(path: str, first: int, last: int, total: int) -> str:
    return msgspec.json.encode({"file_path": path, "first": first, "last": last, "total": total}).decode()
