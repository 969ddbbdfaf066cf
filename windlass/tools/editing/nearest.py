"""The place in a file that is most like a text that is not in it, and what differs there: for a model to correct."""

from collections import Counter
from difflib import SequenceMatcher
from heapq import nsmallest

from windlass import limits
from windlass.tools.text import shorten

_DIFFERENCES_TOLD = 5  # lines; whoever is further off has to view the file


def nearest_place(text: str, old: str) -> str:
    """A sentence or two about the nearest place; "" if nothing in the file is like it."""
    wanted = old.replace("\r\n", "\n").removesuffix("\n").split("\n")
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    first = _by_equal_lines(lines, wanted)
    if first is None:
        first = _by_alike_line(lines, wanted)
    if first is None:
        return ""
    differences = [
        f"line {number + 1}: the file has {_quoted(lines[number])}, you gave {_quoted(line)}"
        for number, line in enumerate(wanted, first)
        if 0 <= number < len(lines) and lines[number] != line
    ]
    if not differences:
        return f"The nearest place is at line {first + 1}, where the file ends too soon."
    more = len(differences) - _DIFFERENCES_TOLD
    told = "; ".join(differences[:_DIFFERENCES_TOLD]) + (f"; and {more} more lines" if more > 0 else "")
    return f"The nearest place differs in {told}."


def _by_equal_lines(lines: list[str], wanted: list[str]) -> int | None:
    """Where most of the wanted lines stand as they should, whitespace aside."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if line.strip():
            offsets.setdefault(line.strip(), []).append(offset)
    # A line that is wanted a thousand times would make a vote of each of its places in the file.
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for offset in offsets.get(line.strip(), [])[:_DIFFERENCES_TOLD]:
            votes[number - offset] += 1
    if not votes:
        return None
    most = max(votes.values())
    return max(0, min(first for first, count in votes.items() if count == most))


def _by_alike_line(lines: list[str], wanted: list[str]) -> int | None:
    """Where the line stands that is most like the first one wanted; long files are looked at only in part."""
    offset, line = next(((offset, line.strip()) for offset, line in enumerate(wanted) if line.strip()), (0, ""))
    if not line:
        return None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(line[: limits.NEAREST_LINE_CHARACTERS])
    promising: list[tuple[float, int]] = []
    for number, other in enumerate(lines[: limits.NEAREST_LINES]):
        matcher.set_seq1(other.strip()[: limits.NEAREST_LINE_CHARACTERS])
        if matcher.real_quick_ratio() > limits.NEAREST_LIKENESS and matcher.quick_ratio() > limits.NEAREST_LIKENESS:
            promising.append((-matcher.quick_ratio(), number))
    best, at = limits.NEAREST_LIKENESS, None
    for at_most, number in nsmallest(limits.NEAREST_COMPARISONS, promising):
        if -at_most <= best:
            break  # nor can those that follow be more alike
        matcher.set_seq1(lines[number].strip()[: limits.NEAREST_LINE_CHARACTERS])
        if matcher.ratio() > best:
            best, at = matcher.ratio(), number
    return None if at is None else max(0, at - offset)


def _quoted(line: str) -> str:
    # As a literal: a tab, a trailing blank or a no-break space is what one would not see otherwise.
    return shorten(repr(line), limits.NEAREST_LINE_CHARACTERS).replace("\n", " ")
