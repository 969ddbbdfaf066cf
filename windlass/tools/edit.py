"""`edit`: replace an exact piece of a file."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.change import Change, ChangePlan, encode, plan_change
from windlass.tools.files import WorkspaceRoot
from windlass.wire.tools import ToolError


class EditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]
    old_string: Annotated[str, Meta(description="The exact text to replace; empty to create a file that is not there")]
    new_string: Annotated[str, Meta(description="The text to put in its place; empty to remove it")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence instead of the only one")] = False


class Edit:
    name = "edit"
    description = (
        "Replace a piece of text in a file of the workspace. `old_string` must be exactly what is in the file, with "
        "all spaces and line breaks but without the line numbers that `view` shows, and must occur once: add lines "
        "around it until it does, or set `replace_all`. With an empty `old_string` a new file is created."
    )
    schema = schema_of(EditArguments)
    read_only = False

    def __init__(self, root: WorkspaceRoot) -> None:
        self._root = root

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ChangePlan:
        wanted = read_arguments(arguments, EditArguments)
        path = self._root.check_writable(wanted.file_path)
        before = self._root.read_if_exists(path, limits.FILE_READ_BYTES)
        change = Change(path, before, _edited(path, before, wanted))
        return plan_change(self._root, change, tool_name=self.name, tool_call_id=tool_call_id, action="edit")


def _edited(path: str, before: bytes | None, wanted: EditArguments) -> bytes:
    """The content after the edit. On bytes, so that what is not touched stays as it is, whatever its encoding."""
    old, new = encode(wanted.old_string, "old_string"), encode(wanted.new_string, "new_string")
    if not old:
        if before is not None:
            raise ToolError(
                f"{path} exists. Give the text to replace as `old_string`, or use `write` to replace it all."
            )
        return new
    if before is None:
        raise ToolError(f"There is no file {path}. To create it, use `write`.")
    if old == new:
        raise ToolError("`old_string` and `new_string` are the same: nothing would change.")
    count = before.count(old)
    if count == 0:
        raise ToolError(_not_found(path, before, old))
    if count > 1 and not wanted.replace_all:
        raise ToolError(
            f"`old_string` occurs {count} times in {path}. Add the lines around the one you mean, or set `replace_all`."
        )
    # Before it is made: many short pieces replaced by a long one would fill the memory.
    size = len(before) + count * (len(new) - len(old))
    if size > limits.FILE_WRITE_BYTES:
        raise ToolError(f"{path} would have {size} bytes; at most {limits.FILE_WRITE_BYTES} are possible.")
    return before.replace(old, new)


def _not_found(path: str, before: bytes, old: bytes) -> str:
    message = f"`old_string` is not in {path}. "
    if old.replace(b"\n", b"\r\n") in before:
        return message + "The file's lines end with \\r\\n; write them so, in both strings."
    if b" ".join(old.split()) in b" ".join(before.split()):
        return message + "The words are there with other spaces or line breaks; view the file and copy it exactly."
    return message + "View the file and copy the text exactly, without the line numbers."
