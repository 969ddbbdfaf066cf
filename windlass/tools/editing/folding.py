"""A text in which characters that people take for the same are the same, and the way back to the original's places."""

import re
import unicodedata
from array import array
from bisect import bisect_right
from functools import cached_property

_LOOK_ALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    # NBSP and its family: an editor shows a blank, a model writes one.
    **dict.fromkeys("\u00a0\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))), " "),
    "\u2026": "...",
}


class Folded:
    """`text` with its line ends as \\n and, with `characters`, look-alikes and composed characters folded too."""

    def __init__(self, text: str, *, characters: bool = False) -> None:
        self._original = text
        self._table = _table(text) if characters else {}
        self.text = text.replace("\r\n", "\n").translate(self._table)

    @cached_property
    def _changes(self) -> tuple["array[int]", "array[int]"]:
        """Where it has grown or shrunk: its offset after each such place, and how far the original is ahead from there.

        Only when it is asked for, because it takes time, and most texts are not found. Arrays, because a file may
        consist of nothing else.
        """
        ends, ahead = array("q"), array("q", [0])
        changing = [chr(code) for code, folded in self._table.items() if len(folded) != 1]
        for found in re.finditer("|".join(["\r\n", *map(re.escape, changing)]), self._original):
            length = 1 if found[0] == "\r\n" else len(self._table[ord(found[0])])
            ends.append(found.start() - ahead[-1] + length)
            ahead.append(ahead[-1] + len(found[0]) - length)
        return ends, ahead

    def aligned(self, offset: int) -> bool:
        """Whether this offset of the folded text lies between two characters of the original."""
        ends, ahead = self._changes
        changes = bisect_right(ends, offset)
        if changes == len(ends):
            return True
        grown = ahead[changes] - ahead[changes + 1]  # by the next of them
        return grown <= 0 or offset <= ends[changes] - grown - 1

    def origin(self, offset: int) -> int:
        """The offset in the original of an aligned offset in the folded text."""
        ends, ahead = self._changes
        return offset + ahead[bisect_right(ends, offset)]


def fold(text: str) -> str:
    """The folded text alone."""
    return text.replace("\r\n", "\n").translate(_table(text))


def _table(text: str) -> dict[int, str]:
    """How the characters of this text are folded: only those it has, so that `translate` stays quick."""
    if text.isascii():
        return {}
    table = {}
    for character in set(text):
        folded = _LOOK_ALIKES.get(character) or unicodedata.normalize("NFD", character)
        if folded != character:
            table[ord(character)] = folded
    return table
