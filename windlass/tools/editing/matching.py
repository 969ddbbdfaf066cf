"""Finding the text a model wants to replace when it is not there letter by letter, and what then takes its place.

Each way of looking is more tolerant than the one before, and counts only if it finds exactly one place: line ends,
whitespace around lines, look-alike characters, and both of these together. What stands at that place and was not meant
to change (the lines or characters that old and new text begin and end with) stays exactly as it is in the file.
"""

from collections.abc import Callable
from dataclasses import dataclass

from windlass import limits
from windlass.tools.editing.folding import Folded, fold
from windlass.tools.editing.indentation import indentation, reindentation
from windlass.tools.editing.line_ends import line_end_of, with_line_end

_PLACES_TOLD = 10  # line numbers in a refusal; whoever gets more has to choose another text anyway


@dataclass(frozen=True, slots=True)
class Found:
    """The place to replace, what to put there, and in what the text there differs from what was asked for."""

    start: int
    end: int
    replacement: str
    differs_in: str


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several places fit: the numbers of their first lines."""

    lines: list[int]
    differs_in: str


def find_tolerantly(text: str, old: str, new: str) -> Found | Ambiguous | None:
    """The one place that is meant, or why it cannot be told; None if there is no such place."""
    # In a very large file only what it takes to edit one with \r\n at all: the rest would take seconds, in steps that
    # hold up everything else.
    large = len(text) > limits.TOLERANT_CHARACTERS
    for look in (_by_line_ends,) if large else (_by_line_ends, _by_lines, _by_characters, _by_lines_and_characters):
        found = look(text, old, new)
        if found is not None:
            return found
    return None


def places(haystack: str, needle: str) -> list[int]:
    """Where it occurs, overlaps too (they are as ambiguous as any two places); the first few are enough to tell."""
    found: list[int] = []
    at = haystack.find(needle)
    while at >= 0 and len(found) < _PLACES_TOLD:
        found.append(at)
        at = haystack.find(needle, at + 1)
    return found


def _by_line_ends(text: str, old: str, new: str) -> Found | Ambiguous | None:
    if "\r\n" not in text and "\r\n" not in old:
        return None
    return _by_folding(Folded(text), text, (old, new), lambda part: part.replace("\r\n", "\n"), "line ends")


def _by_characters(text: str, old: str, new: str) -> Found | Ambiguous | None:
    if text.isascii() and old.isascii():
        return None
    words = "look-alike characters (quotes, dashes, spaces, accents)"
    return _by_folding(Folded(text, characters=True), text, (old, new), fold, words)


def _by_folding(
    folded: Folded, text: str, wanted: tuple[str, str], folding: Callable[[str], str], words: str
) -> Found | Ambiguous | None:
    old, new = wanted
    needle = folding(old)
    found = [at for at in places(folded.text, needle) if folded.aligned(at) and folded.aligned(at + len(needle))]
    if not found:
        return None
    if len(found) > 1:
        return Ambiguous([folded.text.count("\n", 0, at) + 1 for at in found], words)
    at = found[0]
    head = _common(old, new)
    while head and not folded.aligned(at + len(folding(old[:head]))):
        head -= 1
    tail = _common(old[head:][::-1], new[head:][::-1])
    while tail and not folded.aligned(at + len(needle) - len(folding(old[len(old) - tail :]))):
        tail -= 1
    start = folded.origin(at + len(folding(old[:head])))
    end = folded.origin(at + len(needle) - len(folding(old[len(old) - tail :])))
    place = text[folded.origin(at) : folded.origin(at + len(needle))]
    return Found(start, end, with_line_end(new[head : len(new) - tail], line_end_of(place, text)), words)


def _common(left: str, right: str) -> int:
    """How many characters both begin with; never the half of a line end."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count - 1 if left[count - 1 : count] == "\r" else count


def _by_lines(text: str, old: str, new: str) -> Found | Ambiguous | None:
    return _by_stripped_lines(text, old, new, lambda line: line, "whitespace")


def _by_lines_and_characters(text: str, old: str, new: str) -> Found | Ambiguous | None:
    if text.isascii() and old.isascii():
        return None
    return _by_stripped_lines(text, old, new, fold, "whitespace and look-alike characters")


def _by_stripped_lines(
    text: str, old: str, new: str, folding: Callable[[str], str], words: str
) -> Found | Ambiguous | None:
    wanted, old_ends = _lines(old)
    if not any(line.strip() for line in wanted):
        return None  # blank lines are everywhere
    needle = "\n".join(["", *(folding(line).strip(" \t") for line in wanted), ""])
    haystack = "\n".join(["", *(folding(line).strip(" \t\r\n") for line in _whole_lines(text)), ""])
    found = places(haystack, needle)
    first_lines = [haystack.count("\n", 0, at) for at in found]
    if len(found) != 1:
        return Ambiguous([line + 1 for line in first_lines], words) if found else None
    stretch = _Stretch(text, first_lines[0], len(wanted))
    replacement = _replaced_lines(stretch, wanted, old_ends, new, folding)
    return None if replacement is None else Found(stretch.start, stretch.end(old_ends), replacement, words)


class _Stretch:
    """Some whole lines of a text: their content without line ends, their ends, and where they are."""

    def __init__(self, text: str, first: int, count: int) -> None:
        everything = _whole_lines(text)
        here = everything[first : first + count]
        self.start = sum(len(line) for line in everything[:first])
        self.lines = [line.removesuffix("\n").removesuffix("\r") for line in here]
        self.ends = [line.removeprefix(content) for line, content in zip(here, self.lines, strict=True)]
        self.line_end = line_end_of("".join(self._whole(range(count))), text) or "\n"

    def _whole(self, numbers: range) -> list[str]:
        return [self.lines[number] + self.ends[number] for number in numbers]

    def head(self, count: int) -> str:
        return "".join(self._whole(range(count)))

    def tail(self, count: int) -> str:
        return "".join(self._whole(range(len(self.lines) - count, len(self.lines))))

    def end(self, with_line_end: bool) -> int:
        length = len(self.head(len(self.lines)))
        return self.start + length - (0 if with_line_end else len(self.ends[-1]))


def _replaced_lines(
    stretch: _Stretch, wanted: list[str], old_ends: bool, new: str, folding: Callable[[str], str]
) -> str | None:
    """The new lines as the file writes them, or None if their indentation cannot be told from the old ones'."""
    given, new_ends = _lines(new) if new or not old_ends else ([], True)
    head = _common_lines(wanted, given)
    tail = _common_lines(wanted[head:][::-1], given[head:][::-1])
    pairs = [
        (indentation(folding(theirs)), indentation(folding(ours)))
        for theirs, ours in zip(wanted, stretch.lines, strict=True)
        if theirs.strip()
    ]
    reindent = reindentation(pairs)
    middle = ""
    for line in given[head : len(given) - tail]:
        indent = reindent(indentation(line)) if line.strip() else ""
        if indent is None:
            return None
        middle += indent + line.lstrip(" \t") + stretch.line_end if line.strip() else stretch.line_end
    whole = stretch.head(head) + middle + stretch.tail(tail)
    if not old_ends or not new_ends or not stretch.ends[-1]:
        whole = whole.removesuffix("\n").removesuffix("\r") if whole.endswith("\n") else whole
    return whole + stretch.line_end if new_ends and not old_ends else whole


def _whole_lines(text: str) -> list[str]:
    """The lines of a file with their ends; the last one may have none."""
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def _lines(text: str) -> tuple[list[str], bool]:
    """The lines of what a model wrote, and whether the last of them has its line end."""
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > 1 and not lines[-1]:
        return lines[:-1], True
    return lines, False


def _common_lines(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
