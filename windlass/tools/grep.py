"""`grep`: find lines by a regular expression."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.files import WorkspaceRoot
from windlass.tools.searching.search_plan import SearchPlan, check_glob, check_unicode, search_ask
from windlass.wire.tools import ToolError


class GrepArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=limits.SEARCH_PATTERN_CHARACTERS,
            description="Regular expression, as for Python's `re`, for a line or a part of one",
        ),
    ]
    path: Annotated[str, Meta(description="Directory or file to search, relative to the workspace or absolute")] = "."
    include: Annotated[
        str,
        Meta(
            max_length=limits.SEARCH_PATTERN_CHARACTERS,
            description="Only files that match this glob pattern, e.g. *.py or src/**/*.{ts,tsx}",
        ),
    ] = ""
    case_insensitive: Annotated[bool, Meta(description="Take upper and lower case for the same")] = False
    literal: Annotated[bool, Meta(description="Take the pattern as plain text, not as a regular expression")] = False
    context: Annotated[
        int, Meta(ge=0, le=limits.SEARCH_CONTEXT_LINES, description="Lines to show before and after each match")
    ] = 0
    output: Annotated[
        Literal["lines", "files", "count"],
        Meta(description="Matching lines, the files that have some, or how many each file has"),
    ] = "lines"
    limit: Annotated[
        int, Meta(ge=1, le=limits.SEARCH_RESULTS, description="How many lines (or files) to show at most")
    ] = limits.SEARCH_RESULTS_DEFAULT


class Grep:
    name = "grep"
    description = (
        "Search the files of the workspace for lines that match a regular expression (Python's syntax). Each line is "
        "searched by itself: a match cannot span lines. Shows path:line:text, sorted by path and line. Skips .git, "
        "what .gitignore excludes (unless `path` names it), symbolic links, binary files and files over "
        f"{limits.FILE_READ_BYTES // limits.MIB} MiB. Set `literal` for text with characters like ( . [ in it. What "
        "you see here does not count as having read a file: view it before you edit it."
    )
    schema = schema_of(GrepArguments)
    read_only = True

    def __init__(self, root: WorkspaceRoot, environment: dict[str, str]) -> None:
        self._root = root
        self._environment = dict(environment)

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> SearchPlan:
        wanted = read_arguments(arguments, GrepArguments)
        if "\n" in wanted.pattern:
            raise ToolError("`pattern` has a line break, but lines are searched one by one. Search for one line of it.")
        check_unicode(wanted.pattern, "pattern")
        if wanted.include:
            check_glob(wanted.include, "include")
        path = self._root.relative(wanted.path or ".")
        request = {"search": "grep", **msgspec.structs.asdict(wanted), "path": path}
        what = f"Search {path or 'the workspace'} for lines with {wanted.pattern}"
        ask = search_ask(self._root, request, what, self.name, tool_call_id)
        return SearchPlan(ask, self._root, request, self._environment)
