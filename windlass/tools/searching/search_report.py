"""What a model is told of the lines that were found: bounded, in one order, and honest about what was left out."""

import re
from collections.abc import Iterator
from typing import Any

from windlass import limits

_BEFORE_MATCH_CHARACTERS = limits.SEARCH_LINE_CHARACTERS // 3  # of a long line, so that one sees what it is about
_CUT = "[...]"


class SearchReport:
    """Takes files in their order; `full` once nothing more would be told.

    `output` is `lines` (path:number:text, and with context path-number-text), `files` (paths) or `count` (path:count);
    at most `limit` matching lines, or files.
    """

    def __init__(self, output: str, limit: int, context: int) -> None:
        self.full = False
        self._output = output
        self._limit = limit
        self._context = context
        self._told: list[str] = []
        self._room = limits.TOOL_OUTPUT_CHARACTERS - 500  # for what is said after the lines
        self._matches = self._files = 0

    def add(self, path: str, lines: list[str], pattern: re.Pattern[str]) -> None:
        found = ((number, match) for number, line in enumerate(lines) if (match := pattern.search(line)))
        match self._output:
            case "lines":
                self._add_lines(path, lines, found)
            case "files":
                if next(found, None) is not None:
                    self._add_file(path, 1, path)
            case _:
                count = sum(1 for _ in found)
                if count:
                    self._add_file(path, count, f"{path}:{count}")

    def _add_file(self, path: str, count: int, line: str) -> None:
        if self._files == self._limit or not self._tell(line):
            self.full = True
            return
        self._files += 1
        self._matches += count

    def _add_lines(self, path: str, lines: list[str], found: Iterator[tuple[int, re.Match[str]]]) -> None:
        matches: dict[int, re.Match[str]] = {}
        for number, match in found:
            if self._matches + len(matches) == self._limit:
                self.full = True
                break
            matches[number] = match
        last = -1
        for number in _with_context(list(matches), self._context, len(lines)):
            if self._context and self._told and number != last + 1:
                self._tell("--")
            mark = ":" if number in matches else "-"
            if not self._tell(f"{path}{mark}{number + 1}{mark}{_shown(lines[number], matches.get(number))}"):
                self.full = True
                return
            self._matches += number in matches
            last = number
        self._files += bool(matches)

    def _tell(self, line: str) -> bool:
        self._room -= len(line) + 1
        if self._room < 0:
            return False
        self._told.append(line)
        return True

    def text(self) -> str:
        if not self._told and not self.full:
            return "No line matches." if self._output == "lines" else "No file has a line that matches."
        more = "[there is more: use a narrower pattern, `path` or `include`, or a larger `limit`]"
        return "\n".join([*self._told, more] if self.full else self._told)

    def figures(self) -> dict[str, Any]:
        return {"matches": self._matches, "files_matched": self._files, "complete": not self.full}


def _with_context(numbers: list[int], context: int, total: int) -> list[int]:
    """The numbers and those around them, each once."""
    around: dict[int, None] = {}
    for number in numbers:
        around.update(dict.fromkeys(range(max(0, number - context), min(total, number + context + 1))))
    return list(around)


def _shown(line: str, match: re.Match[str] | None) -> str:
    """The line, or of a long one the part around the match."""
    most = limits.SEARCH_LINE_CHARACTERS
    if len(line) <= most:
        return line
    start = max(0, match.start() - _BEFORE_MATCH_CHARACTERS) if match else 0
    end = start + most
    return f"{_CUT if start else ''}{line[start:end]}{_CUT if end < len(line) else ''}"
