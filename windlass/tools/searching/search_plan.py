"""A search that was understood: what `glob` and `grep` have in common."""

import os
from dataclasses import dataclass
from typing import Any

from windlass.tools.files import WorkspaceRoot
from windlass.tools.searching.globs import GlobPattern
from windlass.tools.searching.search import search
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolError, ToolOutput


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A search that was understood; what it reads is below `ask.path`."""

    ask: PermissionAsk
    root: WorkspaceRoot
    request: dict[str, Any]
    environment: dict[str, str]

    async def run(self) -> ToolOutput:
        return await search(self.root, self.request, self.environment)


def search_ask(
    root: WorkspaceRoot, request: dict[str, Any], description: str, tool_name: str, tool_call_id: str
) -> PermissionAsk:
    path = request["path"]
    return PermissionAsk(
        tool_call_id=tool_call_id,
        tool_name=tool_name,
        action="search",
        description=description,
        path=os.path.join(root.path, path) if path else root.path,
        resource=path or ".",
        params={key: value for key, value in request.items() if key != "search"} | {"path": path or "."},
        confined=True,
    )


def check_glob(pattern: str, field: str) -> None:
    """Raise ToolError, which names the field, for a pattern that makes no sense."""
    check_unicode(pattern, field)
    try:
        GlobPattern(pattern)
    except ValueError as error:
        raise ToolError(f"`{field}`: {error}") from None


def check_unicode(text: str, field: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"`{field}` contains characters that are not valid Unicode.") from None
