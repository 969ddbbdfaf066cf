"""`glob`: find files by their names."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.files import WorkspaceRoot
from windlass.tools.searching.search_plan import SearchPlan, check_glob, search_ask


class GlobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=limits.SEARCH_PATTERN_CHARACTERS,
            description="Glob pattern, e.g. **/*.py, src/**/test_*.{ts,tsx} or README*",
        ),
    ]
    path: Annotated[str, Meta(description="Directory to search, relative to the workspace or absolute")] = "."
    limit: Annotated[int, Meta(ge=1, le=limits.SEARCH_RESULTS, description="How many files to show at most")] = (
        limits.SEARCH_RESULTS_DEFAULT
    )


class Glob:
    name = "glob"
    description = (
        "Find files of the workspace by name, the most recently changed first. `*` and `?` stay within a name, `**` "
        "stands for any directories, {a,b} for alternatives, [abc] for one of the characters. A pattern without a "
        "slash is for names in any directory; one with a slash is for the whole path below `path`. Skips .git, what "
        ".gitignore excludes (unless `path` names it) and symbolic links. To look inside files use `grep`."
    )
    schema = schema_of(GlobArguments)
    read_only = True

    def __init__(self, root: WorkspaceRoot, environment: dict[str, str]) -> None:
        self._root = root
        self._environment = dict(environment)

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> SearchPlan:
        wanted = read_arguments(arguments, GlobArguments)
        path = self._root.relative(wanted.path or ".")
        pattern = self._below(wanted.pattern, path)
        check_glob(pattern, "pattern")
        request = {"search": "glob", "pattern": pattern, "path": path, "limit": wanted.limit}
        ask = search_ask(self._root, request, f"Find files {wanted.pattern}", self.name, tool_call_id)
        return SearchPlan(ask, self._root, request, self._environment)

    def _below(self, pattern: str, path: str) -> str:
        """Models also write the workspace's own path before a pattern; what is absolute otherwise is outside."""
        if not pattern.startswith("/"):
            return pattern
        inside = self._root.relative(pattern)
        start = f"{path}/" if path else ""
        # With its slash, so that it stays a pattern for whole paths.
        return "/" + inside.removeprefix(start)
