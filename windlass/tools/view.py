"""`view`: read a text file, with line numbers, or look at a picture."""

import asyncio
import base64
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.editing.line_ends import uniform_line_end
from windlass.tools.magic import other_type, picture_type
from windlass.tools.read_files import ReadFiles
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
        "says when there is more. A PNG, JPEG, GIF or WebP file is shown as the picture it is. Cannot show other "
        "binary files, nor directories; use `ls` for those. A file must be viewed before it can be edited."
    )
    schema = schema_of(ViewArguments)
    read_only = True

    def __init__(self, root: FileRoot, known: ReadFiles) -> None:
        self._root = root
        self._known = known

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
        return ViewPlan(ask, self._root, self._known, path, max(1, wanted.offset), wanted.limit)


@dataclass(frozen=True, slots=True)
class ViewPlan:
    ask: PermissionAsk
    root: FileRoot
    known: ReadFiles
    path: str
    first: int
    limit: int

    async def run(self) -> ToolOutput:
        return await asyncio.to_thread(self._view)

    def _view(self) -> ToolOutput:
        content = self.root.read_bytes(self.path, limits.FILE_READ_BYTES)
        if mime_type := picture_type(content):
            return self._picture(content, mime_type)
        if b"\0" in content:
            raise ToolError(f"{self.path} is not a text file: {len(content)} bytes, {other_type(content)}. Use bash.")
        return self._text(content)

    def _picture(self, content: bytes, mime_type: str) -> ToolOutput:
        if len(content) > limits.VIEW_IMAGE_BYTES:
            raise ToolError(
                f"{self.path} is a picture ({mime_type}) of {len(content)} bytes; at most {limits.VIEW_IMAGE_BYTES} "
                "can be shown. Make a smaller copy with bash and view that."
            )
        return ToolOutput(
            f"{self.path}: a picture ({mime_type}, {len(content)} bytes).",
            metadata=self._metadata(content, mime_type=mime_type),
            data=base64.b64encode(content).decode(),
            mime_type=mime_type,
        )

    def _text(self, content: bytes) -> ToolOutput:
        text = content.decode("utf-8", "replace")
        # A \r that every line has would be copied into an edit, or taken for a part of the text.
        line_end = uniform_line_end(text) or "\n"
        if not text:
            return ToolOutput(f"{self.path} is empty.", metadata=self._metadata(content))
        total = text.count(line_end) + (not text.endswith(line_end))  # what follows the last line end is no line
        if self.first > total:
            raise ToolError(f"{self.path} has {total} lines; offset {self.first} is after its end.")
        shown = _numbered(islice(_lines(text, line_end), self.first - 1, self.first - 1 + self.limit), self.first)
        last = self.first + len(shown) - 1
        if last < total:
            shown.append(f"[lines {self.first} to {last} of {total}; go on with offset={last + 1}]")
        if line_end == "\r\n":
            shown.append("[its lines end with \\r\\n; `edit` keeps that]")
        if text.encode() != content:
            shown.append("[some of its bytes are not UTF-8 and are shown as \ufffd]")
        return ToolOutput("\n".join(shown), metadata=self._metadata(content, first=self.first, last=last, total=total))

    def _metadata(self, content: bytes, **more: Any) -> str:
        files = self.known.note(self.path, content)
        return msgspec.json.encode({"file_path": self.path, **more, "files": files}).decode()


def _lines(text: str, line_end: str) -> Iterator[str]:
    """One by one: to split a million lines in one step would hold up everything else in the process meanwhile."""
    start = 0
    while start < len(text):
        end = text.find(line_end, start)
        yield text[start : end if end >= 0 else len(text)]
        start = end + len(line_end) if end >= 0 else len(text)


def _numbered(lines: Iterable[str], first: int) -> list[str]:
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
    shown = line[: limits.VIEW_LINE_CHARACTERS]
    return f"{shown}[... {rest} more characters in this line; `grep` shows the part around a match]"
