"""`edit`: replace a piece of a file."""

from typing import Annotated, Any

from msgspec import Meta

from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.change import Change, ChangePlan, current_content, plan_change
from windlass.tools.editing.edits import Replacement, edited
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles


class EditArguments(Replacement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]


class Edit:
    name = "edit"
    description = (
        "Replace a piece of text in a file of the workspace. View the file first: a file that you have not read, or "
        "that has changed since, is refused. `old_string` must be exactly what is in the file, with all spaces and "
        "line breaks but without the line numbers that `view` shows, and must occur once: add lines around it until "
        "it does, or set `replace_all`. If only whitespace around lines or look-alike characters differ and a single "
        "place fits, that place is changed in the file's own style, and you are told. With an empty `old_string` a new "
        "file is created. For several changes of one file use `multiedit`."
    )
    schema = schema_of(EditArguments)
    read_only = False

    def __init__(self, root: WorkspaceRoot, known: ReadFiles) -> None:
        self._root = root
        self._known = known

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ChangePlan:
        wanted = read_arguments(arguments, EditArguments)
        path, before = current_content(self._root, self._known, wanted.file_path)
        after = edited(path, before, wanted)
        change = Change(path, before, after.content, after.note)
        return plan_change(
            self._root, self._known, change, tool_name=self.name, tool_call_id=tool_call_id, action="edit"
        )
