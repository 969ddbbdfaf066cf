"""`ls`: what is in a directory, as a tree of bounded depth and length."""

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.text import shown
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import FileRoot, ToolError, ToolOutput

_MARKS = {"dir": "/", "link": "@", "other": "|"}
_SKIPPED = frozenset(
    {".git", "node_modules", "__pycache__", ".venv"}
)  # named, not opened: nobody looks for files there


class LsArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="Directory, relative to the workspace or absolute")] = "."
    depth: Annotated[int, Meta(ge=1, le=limits.LS_DEPTH, description="How many levels to show")] = 2


class Ls:
    name = "ls"
    description = (
        "List a directory of the workspace as an indented tree. Directories end with /, symbolic links with @ (they "
        f"are not followed), pipes and devices with |. Shows at most {limits.DIRECTORY_ENTRIES} entries and says when "
        f"there are more. The contents of {', '.join(sorted(_SKIPPED))} are shown only if you list them directly."
    )
    schema = schema_of(LsArguments)
    read_only = True

    def __init__(self, root: FileRoot) -> None:
        self._root = root

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "LsPlan":
        wanted = read_arguments(arguments, LsArguments)
        path = self._root.relative(wanted.path or ".")
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="list",
            description=f"List {path or 'the workspace'}",
            path=os.path.join(self._root.path, path) if path else self._root.path,
            resource=path or ".",
            params={"path": path or ".", "depth": wanted.depth},
            confined=True,
        )
        return LsPlan(ask, self._root, path, wanted.depth)


@dataclass(frozen=True, slots=True)
class LsPlan:
    ask: PermissionAsk
    root: FileRoot
    path: str
    depth: int

    async def run(self) -> ToolOutput:
        return await asyncio.to_thread(self._list)

    def _list(self) -> ToolOutput:
        children, complete = self._gather()
        lines = [f"{shown(self.path) or '.'}/", *_drawn(children, self.path, 1)]
        count = sum(len(entries) for entries in children.values())
        if not count:
            lines.append("  (empty)")
        if not complete:
            lines.append(
                f"[cut after {count} entries; list a directory below, or with a smaller depth, to see the rest]"
            )
        text = _whole_lines(lines, limits.TOOL_OUTPUT_CHARACTERS)
        return ToolOutput(text, metadata=msgspec.json.encode({"path": self.path or ".", "entries": count}).decode())

    def _gather(self) -> tuple[dict[str, list[tuple[str, str]]], bool]:
        """Entries by directory, level by level, so that a cut costs the deepest first; and whether these are all."""
        children: dict[str, list[tuple[str, str]]] = {}
        room = limits.DIRECTORY_ENTRIES
        waiting = deque([(self.path, 1)])
        while waiting:
            path, level = waiting.popleft()
            entries = self._entries(path)
            children[path] = entries[:room]
            if len(entries) > room:
                return children, False
            room -= len(entries)
            if level < self.depth:
                waiting += [(_join(path, name), level + 1) for name, kind in entries if _worth_opening(name, kind)]
        return children, True

    def _entries(self, path: str) -> list[tuple[str, str]]:
        try:
            return self.root.list_directory(path)
        except ToolError:
            if path == self.path:
                raise
            return []  # gone or unreadable since its parent was read: the rest is still worth showing


def _worth_opening(name: str, kind: str) -> bool:
    # A name that cannot be shown as it is could not be asked for either.
    return kind == "dir" and name not in _SKIPPED and name == shown(name)


def _drawn(children: dict[str, list[tuple[str, str]]], path: str, level: int) -> list[str]:
    lines = []
    for name, kind in children.get(path, []):
        lines.append(f"{'  ' * level}{shown(name)}{_MARKS.get(kind, '')}")
        if kind == "dir":
            lines += _drawn(children, _join(path, name), level + 1)
    return lines


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _whole_lines(lines: list[str], limit: int) -> str:
    text = "\n".join(lines)
    if len(text) <= limit:
        return text
    return text[:limit].rpartition("\n")[0] + "\n[cut here: too long; list a directory below to see the rest]"
