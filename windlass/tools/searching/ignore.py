"""What .gitignore files exclude, by git's own rules: the last rule that fits decides, a deeper file before a higher."""

import re
from dataclasses import dataclass

from windlass.tools.searching.globs import PathPattern, name_pattern

_WILD = frozenset("*?[\\")


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int
    excludes: bool
    only_directories: bool


class IgnoreFile:
    """The rules of one .gitignore; paths are relative to its directory. Rules that make no sense exclude nothing."""

    def __init__(self, text: str) -> None:
        self._names: dict[str, list[_Rule]] = {}
        self._wild: list[tuple[_Rule, PathPattern | re.Pattern[str]]] = []
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n")):
            self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        pattern = _without_trailing_spaces(line.removesuffix("\r"))
        if not pattern or pattern.startswith("#"):
            return
        excludes = not pattern.startswith("!")
        pattern = pattern if excludes else pattern[1:]
        only_directories = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        rule = _Rule(number, excludes, only_directories)
        if not pattern:
            return
        if "/" not in pattern and not _WILD & set(pattern):
            self._names.setdefault(pattern, []).append(rule)
            return
        try:
            fits = PathPattern(pattern.removeprefix("/")) if "/" in pattern else name_pattern(pattern)
        except ValueError:
            return
        self._wild.append((rule, fits))

    def excludes(self, path: str, name: str, is_directory: bool) -> bool | None:
        """Whether the path is excluded; None if no rule here is about it."""
        decided: _Rule | None = None
        for rule in self._names.get(name, ()):
            if is_directory or not rule.only_directories:
                decided = rule
        for rule, pattern in reversed(self._wild):
            if decided is not None and rule.number < decided.number:
                break
            if (is_directory or not rule.only_directories) and _fits(pattern, path, name):
                decided = rule
                break
        return None if decided is None else decided.excludes


def _fits(pattern: PathPattern | re.Pattern[str], path: str, name: str) -> bool:
    if isinstance(pattern, PathPattern):
        return pattern.matches(path)
    return pattern.fullmatch(name) is not None


def _without_trailing_spaces(line: str) -> str:
    """A space that is preceded by a backslash stays."""
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 and len(kept) < len(line) else kept
