"""One replacement in a file's content: what `edit` and `multiedit` do, decided on bytes without touching a disk."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from windlass import limits
from windlass.tools.change import encode
from windlass.tools.editing.line_ends import line_end_of, with_line_end
from windlass.tools.editing.matching import Ambiguous, find_tolerantly, places
from windlass.tools.editing.nearest import nearest_place
from windlass.wire.tools import ToolError

Refusal = Literal["missing", "exists", "no_change", "not_found", "not_unique", "too_large"]


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    old_string: Annotated[str, Meta(description="The exact text to replace; empty to create a file that is not there")]
    new_string: Annotated[str, Meta(description="The text to put in its place; empty to remove it")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence instead of the only one")] = False


class EditRefused(ToolError):
    """The replacement cannot be made; `kind` says why in a word, for those who count."""

    def __init__(self, kind: Refusal, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Edited:
    """The content after a replacement; `note` says in what the text that was replaced differs from what was given."""

    content: bytes
    note: str = ""


def edited(path: str, before: bytes | None, wanted: Replacement) -> Edited:
    """The content after the replacement; raises EditRefused.

    On bytes, so that what is not touched stays as it is, whatever its encoding. In a file whose lines end with \\r\\n,
    those of the new text do too.
    """
    old, new = encode(wanted.old_string, "old_string"), encode(wanted.new_string, "new_string")
    if not old:
        if before is not None:
            raise EditRefused(
                "exists",
                f"{path} exists. Give the text to replace as `old_string`, or use `write` to replace it all.",
            )
        return Edited(new)
    if before is None:
        raise EditRefused("missing", f"There is no file {path}. To create it, use `write`.")
    if old == new:
        raise EditRefused("no_change", "`old_string` and `new_string` are the same: nothing would change.")
    # One that begins within a \r\n is not there as it is: replaced, it would leave half a line end.
    splits = old.startswith(b"\n") and b"\r" + old in before
    after = _tolerantly(path, before, wanted) if splits or old not in before else _exactly(path, before, wanted)
    if after.content == before:
        raise EditRefused("no_change", f"{path} already is as it would be after this: nothing would change.")
    return after


def _exactly(path: str, before: bytes, wanted: Replacement) -> Edited:
    # Broken bytes become characters that become the same bytes again.
    text = before.decode("utf-8", "surrogateescape")
    old = wanted.old_string
    found = places(text, old)
    if len(found) > 1 and not wanted.replace_all:
        lines = [text.count("\n", 0, at) + 1 for at in found]
        raise _not_unique(path, max(len(found), text.count(old)), lines, "")
    line_end = line_end_of(old, text)
    mixed = "\n" in old.replace("\r\n", "")
    new = with_line_end(wanted.new_string, line_end) if line_end == "\r\n" and not mixed else wanted.new_string
    count = text.count(old)
    # Before it is made: many short pieces replaced by a long one would fill the memory.
    size = len(before) + count * (len(new.encode()) - len(old.encode()))
    if size > limits.FILE_WRITE_BYTES:
        raise EditRefused(
            "too_large", f"{path} would have {size} bytes; at most {limits.FILE_WRITE_BYTES} are possible."
        )
    return Edited(text.replace(old, new).encode("utf-8", "surrogateescape"))


def _tolerantly(path: str, before: bytes, wanted: Replacement) -> Edited:
    text = before.decode("utf-8", "surrogateescape")
    found = find_tolerantly(text, wanted.old_string, wanted.new_string)
    if found is None:
        raise EditRefused("not_found", _not_found(path, text, wanted.old_string))
    if isinstance(found, Ambiguous):
        raise _not_unique(path, len(found.lines), found.lines, f" if one does not look at {found.differs_in}")
    after = text[: found.start] + found.replacement + text[found.end :]
    return Edited(
        after.encode("utf-8", "surrogateescape"),
        f"`old_string` is not exactly what was in the file: it differs in {found.differs_in}. The only place that fits "
        "otherwise was changed, and the file's own way was kept.",
    )


def _not_unique(path: str, count: int, lines: list[int], if_what: str) -> EditRefused:
    numbers = ", ".join(map(str, dict.fromkeys(lines)))
    where = f"line{'s' if len(set(lines)) > 1 else ''} {numbers}{', ...' if count > len(lines) else ''}"
    way = "Add the lines around the one you mean" + (
        ", exactly as they are in the file." if if_what else ", or set `replace_all`."
    )
    return EditRefused("not_unique", f"`old_string` occurs {count} times in {path}{if_what} ({where}). {way}")


def _not_found(path: str, text: str, old: str) -> str:
    message = f"`old_string` is not in {path}."
    if not text:
        return f"{message} The file is empty; use `write`."
    lines = old.removesuffix("\n").split("\n")
    if all(line.partition("\t")[0].strip().isdecimal() for line in lines):
        return f"{message} Leave out the line numbers and tabs that `view` puts before each line."
    if len(text) > limits.TOLERANT_CHARACTERS:
        message += " In a file of this size nothing that is only like it is taken for it."
    nearest = nearest_place(text[: limits.TOLERANT_CHARACTERS], old)
    return " ".join(filter(None, [message, nearest, "View the file and copy the text exactly."]))
