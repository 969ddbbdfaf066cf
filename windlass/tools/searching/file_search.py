"""Finding files by their names, the newest first: what `glob` asks the searching process for."""

from heapq import nlargest
from typing import Any

from windlass import limits
from windlass.tools.searching.globs import GlobPattern
from windlass.tools.searching.walk import File, Walk
from windlass.tools.text import shown


class SearchRefused(Exception):
    """The search makes no sense as it was asked for; the message is for the model."""


def glob_of(pattern: str) -> GlobPattern:
    try:
        return GlobPattern(pattern)
    except ValueError as error:
        raise SearchRefused(str(error)) from None


def find_files(root: int, request: dict[str, Any]) -> dict[str, Any]:
    """`pattern` is relative to `path`. Answers with text for a model, and figures."""
    pattern, start, limit = glob_of(request["pattern"]), request["path"], request["limit"]
    walk = Walk(root, start)
    count = 0
    newest: list[File] = []
    prefix = f"{start}/" if start else ""
    for file in walk:
        if pattern.matches(file.path.removeprefix(prefix)):
            count += 1
            newest.append(file)
            if len(newest) > 2 * limits.SEARCH_RESULTS:
                newest = _newest(newest, limit)
    newest = _newest(newest, limit)
    lines = [shown(file.path) for file in newest] or ["No file matches."]
    text, cut = whole_lines(lines)
    if cut or count > limit:
        told = text.count("\n") + 1
        text += f"\n[the {told} newest of {count} files; a narrower pattern or another `path` shows others]"
    return {"text": text + incomplete(walk), "metadata": {"files_found": count}}


def _newest(files: list[File], limit: int) -> list[File]:
    # Of those that are equally old, the first by path: the order must not depend on anything else.
    by_path = sorted(files, key=lambda file: file.path.split("/"))
    return nlargest(limit, by_path, key=lambda file: file.changed_ns)


def whole_lines(lines: list[str]) -> tuple[str, bool]:
    """As many lines as a model is shown, and whether some were left out."""
    room = limits.TOOL_OUTPUT_CHARACTERS - 500  # for what is said after them
    for number, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return "\n".join(lines[:number]), True
    return "\n".join(lines), False


def incomplete(walk: Walk) -> str:
    if walk.complete:
        return ""
    return f"\n[only the first {limits.SEARCH_ENTRIES} entries were looked at; search in a smaller `path`]"
