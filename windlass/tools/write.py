"""`write`: create a file or replace all of it."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.change import Change, ChangePlan, encode, plan_change
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import ToolError


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]
    content: Annotated[str, Meta(description="The whole new content of the file")]


class Write:
    name = "write"
    description = (
        "Create a file of the workspace, or replace all of its content. Missing directories are made. To change a part "
        "of a file use `edit`. Does not write through symbolic links and not into .git."
    )
    schema = schema_of(WriteArguments)
    read_only = False

    def __init__(self, root: WorkspaceRoot) -> None:
        self._root = root

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ChangePlan:
        wanted = read_arguments(arguments, WriteArguments)
        path = self._root.check_writable(wanted.file_path)
        before = self._root.read_if_exists(path, limits.FILE_READ_BYTES)
        after = encode(wanted.content, "content")
        if before == after:
            raise ToolError(f"{path} already has exactly this content.")
        change = Change(path, before, after)
        return plan_change(self._root, change, tool_name=self.name, tool_call_id=tool_call_id, action="write")
