"""The other half of the corpus: characters, files that are special, chains of edits; and the table of them all."""

import unicodedata
from collections.abc import Callable
from itertools import pairwise

from tests.tools.edit_corpus import (
    Maker,
    Situation,
    Style,
    ambiguous_whitespace,
    applied,
    both_moved,
    byte_order_mark,
    crlf,
    crlf_one_line,
    crlf_text,
    duplicates,
    every_one,
    every_overlapping,
    exact_lines,
    exact_piece,
    flattened,
    inner_whitespace,
    mixed_ends,
    moved,
    no_final_newline,
    one,
    overlapping,
    removed,
    spaces,
    tabs,
    trailing_in_file,
    trailing_in_old,
    units,
)
from windlass import limits

# -- characters -------------------------------------------------------------------------------------------------------


def alike(kind: str, pairs: list[tuple[str, str]]) -> Callable[[Maker], Situation]:
    """(in the file, as a model writes it): what is not meant to change stays as the file has it."""

    def make_it(make: Maker) -> Situation:
        ours, theirs = make.dice.choice(pairs)
        left, old, new = make.word(), make.word(), make.word()
        head, tail = make.around()
        before, after = (Style().write([*head, (1, f"{left}{ours} {word}"), *tail]) for word in (old, new))
        return applied(kind, before, f"{left}{theirs} {old}", f"{left}{theirs} {new}", after)

    return make_it


quotes = alike("quotes", [("\u201chi\u201d", '"hi"'), ("it\u2019s", "it's"), ('"hi"', "\u201chi\u201d")])
blanks = alike("no-break spaces and dashes", [("a\u00a0b", "a b"), ("a\u2013b", "a-b"), ("wait\u2026", "wait...")])
accents = alike(
    "composed and decomposed",
    [(unicodedata.normalize(ours, text), unicodedata.normalize(theirs, text))
     for text in ("caf\u00e9", "\u00fcber\u00e5") for ours, theirs in (("NFC", "NFD"), ("NFD", "NFC"))],
)  # fmt: skip


def ambiguous_characters(make: Maker) -> Situation:
    word = make.word()
    before = Style().write([(0, f"say \u201c{word}\u201d"), *make.lines(1, 3), (0, f"say \u201e{word}\u201d")])
    return one("look-alikes fit twice, refused", before, f'say "{word}"', make.text(), "not_unique")


def whitespace_and_characters(make: Maker) -> Situation:
    head, tail = make.around()
    word, new = make.word(), make.text()
    quoted, plain = (1, f"say(\u201c{word}\u201d)"), (1, f'say("{word}")')
    return applied(
        "whitespace and look-alikes",
        Style("\t").write([*head, quoted, *tail]),
        Style().write([plain]),
        Style().write([plain, (1, new)]),
        Style("\t").write([*head, quoted, (1, new), *tail]),
    )


# -- what is not there, or not possible -------------------------------------------------------------------------------


def not_found(make: Maker) -> Situation:
    return one("not there", Style().write(make.lines(3, 9)), make.text(), make.text(), "not_found")


def numbered(make: Maker) -> Situation:
    lines = make.lines(3, 5)
    old = "".join(f"{number:6}\t{text}\n" for number, (_, text) in enumerate(lines, 1))
    return one("with line numbers, refused", Style().write(lines), old, make.text(), "not_found")


def empty_file(make: Maker) -> Situation:
    old, why = make.dice.choice([(make.text(), "not_found"), ("", "exists")])
    return one("empty file", "", old, make.text(), why)


def existing_file(make: Maker) -> Situation:
    return one("empty old text, file exists", Style().write(make.lines(1, 3)), "", make.text(), "exists")


def missing_file(make: Maker) -> Situation:
    return one("missing file", None, make.text(), make.text(), "missing")


def created(make: Maker) -> Situation:
    text = Style().write(make.lines(1, 3))
    return one("created", None, "", text, text.encode())


def no_change(make: Maker) -> Situation:
    lines = make.lines(2, 4)
    text = make.dice.choice([lines[0][1], make.text()])
    return one("no change, refused", Style().write(lines), text, text, "no_change")


def large(make: Maker) -> Situation:
    old, new = make.text(), make.text()
    filler = [(make.dice.randint(0, 3), make.text()) for _ in range(2_000)] * 20
    at = make.dice.randrange(len(filler))
    style = make.dice.choice([Style(), Style(end="\r\n")])
    before, after = (
        style.write(filler[:at]) + style.write([(0, text), (1, "end")]) + style.write(filler[at:])
        for text in (old, new)
    )
    theirs = Style("\t")
    return applied(
        "large file", before, theirs.write([(0, old), (1, "end")]), theirs.write([(0, new), (1, "end")]), after
    )


def too_large(make: Maker) -> Situation:
    before = "u" * 2_000
    growth = "v" * (limits.FILE_WRITE_BYTES // 1_000)
    return Situation("would be too large, refused", before.encode(), [("u", growth, True)], "too_large")


def broken_bytes(make: Maker) -> Situation:
    noise = bytes(make.dice.choices([0xFF, 0xE9, 0xC3, 0x80], k=8))
    old, new, end = make.text(), make.text(), make.dice.choice(["\n", "\r\n"])
    before, after = (noise + f"{end}{text}{end}last{end}".encode() + noise for text in (old, new))
    return one("bytes that are no text", before, f"{old}\nlast", f"{new}\nlast", after)


# -- several ----------------------------------------------------------------------------------------------------------


def chain(make: Maker) -> Situation:
    lines = make.lines(4, 8, level=1)
    chosen = make.dice.sample(range(len(lines)), 3)
    after, edits = list(lines), []
    for number in chosen:
        new = make.text()
        edits.append((lines[number][1], new, False))
        after[number] = (1, new)
    return Situation("multiedit", Style().write(lines).encode(), edits, Style().write(after).encode())


def chain_on_itself(make: Maker) -> Situation:
    """Each edit is of what the one before has made."""
    lines, steps = make.lines(2, 5), [make.text() for _ in range(4)]
    before, after = (Style().write([*lines, (1, text)]).encode() for text in (steps[0], steps[-1]))
    edits = [(old, new, False) for old, new in pairwise(steps)]
    return Situation("multiedit of what it made", before, edits, after)


def chain_creating(make: Maker) -> Situation:
    old, new, other = make.text(), make.text(), make.text()
    edits = [("", f"{other}\n{old}\n", False), (old, new, False)]
    return Situation("multiedit creates", None, edits, f"{other}\n{new}\n".encode())


def chain_broken(make: Maker) -> Situation:
    lines = make.lines(3, 6)
    good = (lines[0][1], make.text(), False)
    bad, why = make.dice.choice(
        [
            ((make.text(), make.text(), False), "not_found"),
            ((lines[0][1], make.text(), False), "not_found"),  # the first edit has taken it away
            ((" = ", " == ", False), "not_unique"),
            ((lines[1][1], lines[1][1], False), "no_change"),
        ]
    )
    return Situation("multiedit refused", Style().write(lines).encode(), [good, bad], why)


def chain_in_style(make: Maker) -> Situation:
    lines, new = make.lines(3, 5, level=2), [make.text(), make.text()]
    ours, theirs = Style("\t", end="\r\n"), Style()
    after = [(2, new[0]), *lines[1:-1], (2, new[1])]
    edits = [
        (theirs.write(lines[:1]), theirs.write([(2, new[0])]), False),
        (theirs.write(lines[-1:]), theirs.write([(2, new[1])]), False),
    ]
    return Situation("multiedit in another style", ours.write(lines).encode(), edits, ours.write(after).encode())


COUNTS: dict[Callable[[Maker], Situation], int] = {
    exact_lines: 8, exact_piece: 6, removed: 6, duplicates: 7, every_one: 7, overlapping: 5, every_overlapping: 3,
    moved: 9, tabs: 9, spaces: 7, units: 6, both_moved: 6, trailing_in_file: 8, trailing_in_old: 6,
    ambiguous_whitespace: 6, inner_whitespace: 6, flattened: 4, crlf: 9, crlf_one_line: 6, crlf_text: 4,
    mixed_ends: 4, no_final_newline: 6, byte_order_mark: 4, quotes: 6, blanks: 6, accents: 6, ambiguous_characters: 3,
    whitespace_and_characters: 3, not_found: 4, numbered: 2, empty_file: 3, existing_file: 1, missing_file: 2,
    created: 2, no_change: 2, large: 3, too_large: 1, broken_bytes: 3, chain: 4, chain_on_itself: 2,
    chain_creating: 1, chain_broken: 3, chain_in_style: 1,
}  # fmt: skip


def corpus() -> list[Situation]:
    kinds = [kind for kind, count in COUNTS.items() for _ in range(count)]
    return [kind(Maker(seed)) for seed, kind in enumerate(kinds)]
