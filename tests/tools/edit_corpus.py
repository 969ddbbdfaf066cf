"""200 situations in which a model edits a file, each with what must come of it.

What must come of it is known from how the situation was made: a file is rendered from lines, the old text from the same
lines in another style, and the expected content from the new lines in the file's style. Nothing of the implementation
is asked.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

Line = tuple[int, str]  # levels of indentation, text


@dataclass(frozen=True)
class Situation:
    """`expected` is the content afterwards, or the kind of the refusal."""

    kind: str
    before: bytes | None
    edits: list[tuple[str, str, bool]]
    expected: bytes | str


@dataclass(frozen=True)
class Style:
    """How lines are written."""

    unit: str = "    "
    base: str = ""
    end: str = "\n"
    blanks: str = ""

    def write(self, lines: list[Line]) -> str:
        return "".join(self.base + self.unit * level + text + self.blanks + self.end for level, text in lines)


class Maker:
    """The dice of one situation, and lines that never repeat."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"edit {seed}")
        self._count = 0

    def word(self) -> str:
        self._count += 1
        return "".join(self.dice.choices("bcdfghklmnprstvz", k=4)) + f"{self._count}x"

    def text(self) -> str:
        return f"{self.word()} = {self.word()}({self.dice.randrange(10, 99)})"

    def lines(self, least: int, most: int, level: int = 0) -> list[Line]:
        return [(level, self.text()) for _ in range(self.dice.randint(least, most))]

    def block(self) -> list[Line]:
        """Lines that go in, deeper, and come out again."""
        levels = self.dice.choice([[0, 1, 1], [0, 1, 2, 1], [0, 1, 2, 2, 0], [0, 1, 0, 1]])
        return [(level, self.text()) for level in levels]

    def changed(self, block: list[Line]) -> list[Line]:
        """Another line in the middle, one level deeper than its neighbour, as an `if` around something makes it."""
        at = self.dice.randrange(1, len(block))
        level = block[at][0]
        return [*block[:at], (level, self.text()), (level + 1, self.text()), *block[at + 1 :]]

    def around(self) -> tuple[list[Line], list[Line]]:
        return self.lines(1, 6), self.lines(1, 6)


def one(kind: str, before: str | bytes | None, old: str, new: str, expected: str | bytes) -> Situation:
    content = before.encode() if isinstance(before, str) else before
    return Situation(kind, content, [(old, new, False)], expected)


def applied(kind: str, before: str, old: str, new: str, after: str) -> Situation:
    return one(kind, before, old, new, after.encode())


# -- exact ------------------------------------------------------------------------------------------------------------


def exact_lines(make: Maker) -> Situation:
    head, tail = make.around()
    block, style = make.block(), Style(make.dice.choice(["    ", "\t", "  "]))
    new = make.changed(block)
    return applied(
        "exact lines",
        style.write(head + block + tail),
        style.write(block),
        style.write(new),
        style.write(head + new + tail),
    )


def exact_piece(make: Maker) -> Situation:
    head, tail = make.around()
    left, old, new, right = (make.word() for _ in range(4))
    before, after = (Style().write([*head, (1, f"{left}({word}){right}"), *tail]) for word in (old, new))
    return applied("exact piece of a line", before, old, new, after)


def removed(make: Maker) -> Situation:
    head, tail = make.around()
    gone = make.lines(1, 3, level=1)
    return applied(
        "lines removed", Style().write(head + gone + tail), Style().write(gone), "", Style().write(head + tail)
    )


def duplicates(make: Maker) -> Situation:
    head, tail = make.around()
    twice = (1, make.text())
    before = Style().write([*head, twice, *tail, *[twice] * make.dice.randint(1, 3)])
    return one("duplicates refused", before, twice[1], make.text(), "not_unique")


def every_one(make: Maker) -> Situation:
    head, tail = make.around()
    old, new = make.text(), make.dice.choice([make.text(), ""])
    times = make.dice.randint(1, 4)
    before, after = (Style().write([*head, (1, text), *tail, *[(2, text)] * times]) for text in (old, new))
    return Situation("replace_all", before.encode(), [(old, new, True)], after.encode())


def overlapping(make: Maker) -> Situation:
    a, b = make.word(), make.word()
    return one("overlapping refused", f"{make.text()}\n{a}{b}{a}{b}{a}\n", f"{a}{b}{a}", make.word(), "not_unique")


def every_overlapping(make: Maker) -> Situation:
    length = make.dice.randint(3, 9)
    before = f"<{'q' * length}>\n"
    after = f"<{'Z' * (length // 2)}{'q' * (length % 2)}>\n"
    return Situation("replace_all overlapping", before.encode(), [("qq", "Z", True)], after.encode())


# -- whitespace -------------------------------------------------------------------------------------------------------


def other_style(kind: str, choose: Callable[[random.Random], tuple[Style, Style]]) -> Callable[[Maker], Situation]:
    def make_it(make: Maker) -> Situation:
        ours, theirs = choose(make.dice)
        head, tail = make.around()
        block = make.block()
        new = make.changed(block)
        return applied(
            kind,
            Style().write(head) + ours.write(block) + Style().write(tail),
            theirs.write(block),
            theirs.write(new),
            Style().write(head) + ours.write(new) + Style().write(tail),
        )

    return make_it


moved = other_style(
    "indentation moved",
    lambda dice: dice.choice(
        [(Style(base="    "), Style()), (Style("\t", "\t\t"), Style("\t")), (Style(), Style(base="  "))]
    ),
)
tabs = other_style(
    "spaces for tabs", lambda dice: (Style("\t", "\t" * (k := dice.randint(0, 2))), Style("    ", "    " * k))
)
spaces = other_style(
    "tabs for spaces", lambda dice: (Style("  ", "  " * (k := dice.randint(0, 2))), Style("\t", "\t" * k))
)
units = other_style("another unit", lambda dice: dice.choice([(Style("  "), Style()), (Style(), Style("  "))]))
both_moved = other_style(
    "moved and another unit", lambda dice: dice.choice([(Style("\t", "\t\t"), Style()), (Style("  ", "   "), Style())])
)


def trailing_in_file(make: Maker) -> Situation:
    """What is not meant to change keeps its blanks; the line that is replaced has those it was given: none."""
    head, tail = make.around()
    first, middle, last = ((0, make.text()) for _ in range(3))
    new = (0, make.text())
    ours = Style(blanks=make.dice.choice(["  ", " ", "\t"]))
    return applied(
        "trailing blanks in the file",
        Style().write(head) + ours.write([first, middle, last]) + Style().write(tail),
        Style().write([first, middle, last]),
        Style().write([first, new, last]),
        Style().write(head) + ours.write([first]) + Style().write([new]) + ours.write([last]) + Style().write(tail),
    )


def trailing_in_old(make: Maker) -> Situation:
    head, tail = make.around()
    block = make.lines(2, 4, level=1)
    new = [*block[:-1], (1, make.text())]
    return applied(
        "trailing blanks in the old text",
        Style().write(head + block + tail),
        Style(blanks="  ").write(block),
        Style(blanks="  ").write(block[:-1]) + Style().write(new[-1:]),
        Style().write(head + new + tail),
    )


def ambiguous_whitespace(make: Maker) -> Situation:
    head, tail = make.around()
    block = make.lines(2, 3)
    before = Style(base="    ").write(block) + Style().write(head) + Style(base="\t").write(block) + Style().write(tail)
    old, new = Style(base="  ").write(block), Style().write(make.lines(1, 2))
    return one("whitespace fits twice, refused", before, old, new, "not_unique")


def inner_whitespace(make: Maker) -> Situation:
    a, b = make.word(), make.word()
    before = Style().write([(0, f'{a} = "{a}  {b}"'), *make.lines(1, 3)])
    return one("inner whitespace refused", before, f'{a} = "{a} {b}"', make.text(), "not_found")


def flattened(make: Maker) -> Situation:
    """Indentation that was left out altogether: where the new line belongs cannot be told."""
    head, tail = make.around()
    block = [(level, make.text()) for level in (0, 1, 2)]
    new = [*block[:2], (0, make.text()), block[2]]
    flat = Style(unit="")
    return one("flattened refused", Style().write(head + block + tail), flat.write(block), flat.write(new), "not_found")


# -- line ends and the ends of files ----------------------------------------------------------------------------------


def crlf(make: Maker) -> Situation:
    head, tail = make.around()
    block = make.block()
    new = make.changed(block)
    ours, theirs = Style(end="\r\n"), Style()
    cut = make.dice.choice([0, 3])  # also from the middle of a line
    return applied(
        "CRLF file, LF text",
        ours.write(head + block + tail),
        theirs.write(block)[cut:],
        theirs.write(new)[cut:],
        ours.write(head + new + tail),
    )


def crlf_one_line(make: Maker) -> Situation:
    head, tail = make.around()
    old, new = make.lines(1, 1), make.lines(2, 3)
    ours = Style(end="\r\n")
    old_text, new_text = (Style().write(lines).removesuffix("\n") for lines in (old, new))
    return applied(
        "CRLF file, new lines", ours.write(head + old + tail), old_text, new_text, ours.write(head + new + tail)
    )


def crlf_text(make: Maker) -> Situation:
    head, tail = make.around()
    block = make.block()
    new = make.changed(block)
    ours, theirs = Style(), Style(end="\r\n")
    return applied(
        "LF file, CRLF text",
        ours.write(head + block + tail),
        theirs.write(block),
        theirs.write(new),
        ours.write(head + new + tail),
    )


def mixed_ends(make: Maker) -> Situation:
    head, tail = make.around()
    block, new = make.lines(2, 3), make.lines(2, 4)
    here, there = make.dice.sample([Style(), Style(end="\r\n")], 2)
    theirs = Style(end="\n" if here.end == "\r\n" else "\r\n")
    return applied(
        "mixed line ends",
        there.write(head) + here.write(block) + there.write(tail),
        theirs.write(block),
        theirs.write(new),
        there.write(head) + here.write(new) + there.write(tail),
    )


def no_final_newline(make: Maker) -> Situation:
    head, last, new = make.lines(1, 4), make.lines(1, 2, level=1), make.lines(1, 2, level=1)
    theirs = make.dice.choice([Style(), Style("\t"), Style(blanks=" ")])
    newer = Style(theirs.unit)
    return applied(
        "no final newline",
        Style().write(head + last).removesuffix("\n"),
        theirs.write(last) if theirs.unit == "\t" else theirs.write(last).removesuffix("\n"),
        newer.write(new) if theirs.unit == "\t" else newer.write(new).removesuffix("\n"),
        Style().write(head + new).removesuffix("\n"),
    )


def byte_order_mark(make: Maker) -> Situation:
    first, rest = make.lines(1, 1), make.lines(2, 4)
    new = make.lines(1, 2)
    return applied(
        "byte order mark",
        "\ufeff" + Style().write(first + rest),
        Style().write(first),
        Style().write(new),
        "\ufeff" + Style().write(new + rest),
    )
