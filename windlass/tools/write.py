"""`write`: create a file or replace all of it."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.change import Change, ChangePlan, current_content, encode, plan_change
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles
from windlass.wire.tools import ToolError


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]
    content: Annotated[str, Meta(description="The whole new content of the file")]


class Write:
    name = "write"
    description = (
        "Create a file of the workspace, or replace all of its content. Missing directories are made. A file that "
        "exists must have been viewed first and not have changed since. To change a part of a file use `edit`. Does "
        "not write through symbolic links and not into .git."
    )
    schema = schema_of(WriteArguments)
    read_only = False

    def __init__(self, root: WorkspaceRoot, known: ReadFiles) -> None:
        self._root = root
        self._known = known

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ChangePlan:
        wanted = read_arguments(arguments, WriteArguments)
        path, before = current_content(self._root, self._known, wanted.file_path)
        after = encode(wanted.content, "content")
        if before == after:
            raise ToolError(f"{path} already has exactly this content.")
        change = Change(path, before, after)
        return plan_change(
            self._root, self._known, change, tool_name=self.name, tool_call_id=tool_call_id, action="write"
        )
