"""From the indentation a model wrote to the one that the file has."""

from collections.abc import Callable, Sequence
from math import gcd

Reindent = Callable[[str], str | None]  # the file's indentation for one of the model's; None if it cannot be told

_TAB_WIDTHS = range(2, 9)  # spaces that are written for one tab; others are an accident, not a habit


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def reindentation(pairs: Sequence[tuple[str, str]]) -> Reindent:
    """What happened to the indentation, told from (the model's, the file's) of the same lines.

    It was moved as a whole (in or out), or written in other units (tabs for spaces, two spaces for four), or both.
    When none of these explains every pair, only what was seen is known.
    """
    known = dict(pairs)
    if any(known[theirs] != ours for theirs, ours in pairs):
        return lambda _: None  # one indentation of the model's is two of the file's: nothing can be concluded
    rule = _moved(pairs) or _scaled(pairs) or _moved_and_scaled(pairs)

    def reindent(theirs: str) -> str | None:
        return known[theirs] if theirs in known else rule(theirs) if rule else None

    return reindent


def _moved(pairs: Sequence[tuple[str, str]]) -> Reindent | None:
    theirs, ours = pairs[0]
    if ours.endswith(theirs):
        more = ours.removesuffix(theirs)
        if all(mine == more + other for other, mine in pairs):
            return lambda indent: more + indent
    if theirs.endswith(ours):
        less = theirs.removesuffix(ours)
        if all(other == less + mine for other, mine in pairs):
            return lambda indent: indent.removeprefix(less) if indent.startswith(less) else None
    return None


def _scaled(pairs: Sequence[tuple[str, str]]) -> Reindent | None:
    deep = [(theirs, ours) for theirs, ours in pairs if theirs or ours]
    units = _units(*deep[0]) if deep else None
    if units is None:
        return None
    unit, our_unit = units

    def scale(indent: str) -> str | None:
        levels, rest = divmod(len(indent), len(unit))
        if indent != unit[0] * len(indent) or (rest and unit[0] == "\t"):
            return None
        return our_unit * levels + " " * rest

    return scale if all(scale(theirs) == ours for theirs, ours in deep) else None


def _units(theirs: str, ours: str) -> tuple[str, str] | None:
    """The smallest (their unit, our unit) that makes one out of the other."""
    if not theirs or not ours or len(set(theirs)) > 1 or len(set(ours)) > 1:
        return None
    common = gcd(len(theirs), len(ours))
    unit, our_unit = theirs[: len(theirs) // common], ours[: len(ours) // common]
    if unit[0] != our_unit[0]:
        tab, spaces = (unit, our_unit) if unit[0] == "\t" else (our_unit, unit)
        if len(tab) != 1 or len(spaces) not in _TAB_WIDTHS:
            return None
    return unit, our_unit


def _moved_and_scaled(pairs: Sequence[tuple[str, str]]) -> Reindent | None:
    base, our_base = min(pairs, key=lambda pair: len(pair[0]))
    if not all(theirs.startswith(base) and ours.startswith(our_base) for theirs, ours in pairs):
        return None
    scale = _scaled([(theirs.removeprefix(base), ours.removeprefix(our_base)) for theirs, ours in pairs])
    if scale is None:
        return None

    def reindent(indent: str) -> str | None:
        deeper = scale(indent.removeprefix(base)) if indent.startswith(base) else None
        return None if deeper is None else our_base + deeper

    return reindent
