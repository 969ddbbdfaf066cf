"""`multiedit`: several replacements in one file, all of them or none."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.arguments import read_arguments, schema_of
from windlass.tools.change import Change, ChangePlan, current_content, plan_change
from windlass.tools.editing.edits import EditRefused, Replacement, edited
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles


class MultieditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file_path: Annotated[str, Meta(min_length=1, description="Path of the file, relative to the workspace or absolute")]
    edits: Annotated[
        list[Replacement],
        Meta(min_length=1, max_length=limits.MULTIEDIT_EDITS, description="The replacements, in order"),
    ]


class Multiedit:
    name = "multiedit"
    description = (
        "Make several replacements in one file of the workspace with one call. They are made in order, each on what "
        "the one before left, by the rules of `edit`; if one of them cannot be made, none is. An `old_string` must "
        "therefore be in the file as the replacements before it have made it. If the first `old_string` is empty, a "
        "new file is created."
    )
    schema = schema_of(MultieditArguments)
    read_only = False

    def __init__(self, root: WorkspaceRoot, known: ReadFiles) -> None:
        self._root = root
        self._known = known

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> ChangePlan:
        wanted = read_arguments(arguments, MultieditArguments)
        path, before = current_content(self._root, self._known, wanted.file_path)
        after, note = all_edited(path, before, wanted.edits)
        change = Change(path, before, after, note)
        return plan_change(
            self._root, self._known, change, tool_name=self.name, tool_call_id=tool_call_id, action="edit"
        )


def all_edited(path: str, before: bytes | None, edits: list[Replacement]) -> tuple[bytes, str]:
    """The content after all of them and what is to be said about it; raises EditRefused that names the one at fault."""
    content, notes, searched = before, [], 0
    for number, wanted in enumerate(edits, 1):
        try:
            after = edited(path, content, wanted)
        except EditRefused as refused:
            raise EditRefused(
                refused.kind, f"Nothing was changed, because of edit {number} of {len(edits)}: {refused}"
            ) from None
        content = after.content
        if after.note:
            notes.append(f"Edit {number}: {after.note}")
            searched += len(content)
        if searched > limits.TOLERANT_EDITS_BYTES:
            raise EditRefused(
                "not_found",
                f"Nothing was changed: up to edit {number} of {len(edits)}, {len(notes)} of the `old_string`s are not "
                f"exactly what is in {path}, which is too much to look for in a file of this size. View it and copy "
                "the text exactly, or make the edits in several calls.",
            )
    assert content is not None  # there is at least one edit, and each leaves a content
    if content == before:
        raise EditRefused("no_change", f"After all edits {path} would be as it is: nothing would change.")
    return content, "\n".join(notes)
