"""A pattern for ripgrep that finds at least every line that Python's pattern finds, and perhaps others.

Which lines match is decided by Python's `re` alone, so the results are the same with ripgrep and without it; ripgrep
only says which files are worth reading. So what the two do not share (look-around, back-references, what a letter is in
Unicode) is not translated but left open: everything here may be wider than the original, nothing may be narrower.

The pattern is for bytes (`--no-unicode`): files are not always valid UTF-8, and Python sees U+FFFD where they are not.
"""

import re
from collections.abc import Iterable, Set
from re import _constants as sre  # type: ignore[attr-defined]  # the parser is not public, but tells all
from typing import Any

_ANY = "(?:[^\\n]{1,4})"  # one character of Python's, which is one to four bytes
_FOREIGN = "(?:[\\x80-\\xff]{1,4})"  # any character that is not ASCII, or a broken one
_NOTHING = "(?:)"
_ASCII = frozenset(map(chr, range(0x80)))
_FOLDS_TO_ASCII = frozenset("iIkKsS")  # U+0131, U+212A and U+017F are these letters when case does not matter
_MARK = "(?:\\xef\\xbb\\xbf)?"  # at the beginning of a file, where it is not part of the first line
_RETURN = "\\r?"  # at the end of a line, where it is not part of it either
_STARTS = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
_ENDS = (sre.AT_END, sre.AT_END_STRING)


def ripgrep_pattern(pattern: str, flags: int) -> str | None:
    """The wider pattern, or None if it cannot be made."""
    try:
        parsed: Any = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
        return _whole(list(parsed), parsed.state.flags)
    except (KeyError, RecursionError):
        return None


def _whole(items: list[tuple[Any, Any]], flags: int) -> str:
    """Only here, at the very beginning and end, are line starts and ends sure to be where they are for Python."""
    start = "^" if items and items[0][0] is sre.AT and items[0][1] in _STARTS else ""
    end = "$" if items and items[-1][0] is sre.AT and items[-1][1] in _ENDS else ""
    return start + _sequence(items, flags) + end


def _sequence(items: Iterable[tuple[Any, Any]], flags: int) -> str:
    return "".join(_item(operation, argument, flags) for operation, argument in items)


def _item(operation: Any, argument: Any, flags: int) -> str:
    match operation:
        case sre.LITERAL:
            return _literal(argument, flags)
        case sre.NOT_LITERAL:
            return _set([(sre.NEGATE, None), (sre.LITERAL, argument)], flags)
        case sre.ANY:
            return _ANY
        case sre.IN:
            return _set(argument, flags)
        case sre.BRANCH:
            return "(?:" + "|".join(_sequence(branch, flags) for branch in argument[1]) + ")"
        case sre.SUBPATTERN:
            _, added, removed, inner = argument
            return "(?:" + _sequence(inner, (flags | added) & ~removed) + ")"
        case sre.ATOMIC_GROUP:
            return "(?:" + _sequence(argument, flags) + ")"
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            least, most, inner = argument
            return f"(?:{_sequence(inner, flags)}){{{least},{'' if most is sre.MAXREPEAT else most}}}"
        case sre.AT:
            return _position(argument)
        case sre.ASSERT | sre.ASSERT_NOT:
            return _NOTHING
        case sre.GROUPREF:
            return f"(?:{_ANY}){{0,}}"
        case sre.GROUPREF_EXISTS:
            _, yes, no = argument
            return f"(?:{_sequence(yes, flags)}|{_sequence(no or [], flags)})"
    raise KeyError(operation)


def _position(where: Any) -> str:
    if where in _STARTS:
        return _MARK
    return _RETURN if where in _ENDS else _NOTHING


def _literal(code: int, flags: int) -> str:
    if flags & re.IGNORECASE or code == 0xFFFD:
        return _set([(sre.LITERAL, code)], flags)
    try:
        return _bytes(chr(code).encode())
    except UnicodeEncodeError:
        return "[^\\s\\S]"  # half a character is in no text


def _set(items: Iterable[tuple[Any, Any]], flags: int) -> str:
    """One character out of a set: exact for ASCII; of the others, all or none."""
    negated = foreign = False
    ascii_members: set[str] = set()
    for operation, argument in items:
        if operation is sre.NEGATE:
            negated = True
        elif operation in (sre.LITERAL, sre.RANGE):
            low, high = (argument, argument) if operation is sre.LITERAL else argument
            ascii_members |= {chr(code) for code in range(low, min(high, 0x7F) + 1)}
            foreign |= high > 0x7F
        else:
            ascii_members |= {character for character in _ASCII if _in_category(argument, character, flags)}
            # With the flag a class is about ASCII alone, but then its opposite is about all the others.
            foreign |= not flags & re.ASCII or argument in _OPPOSITES
    if flags & re.IGNORECASE:
        ascii_members |= {character.swapcase() for character in ascii_members}
    if negated:
        return _one_of(_ASCII - ascii_members, True)
    if flags & re.IGNORECASE:
        folded = _FOLDS_TO_ASCII if foreign else frozenset()
        return _one_of(ascii_members | folded, foreign or bool(ascii_members & _FOLDS_TO_ASCII))
    return _one_of(ascii_members, foreign)


def _one_of(ascii_members: Set[str], foreign: bool) -> str:
    options = [_FOREIGN] if foreign else []
    members = sorted(ascii_members - {"\n"})  # ripgrep would refuse it, and no line has one
    if members:
        options.append("[" + _bytes("".join(members).encode()) + "]")
    return "(?:" + "|".join(options) + ")" if options else "[^\\s\\S]"


_OPPOSITES = (sre.CATEGORY_NOT_DIGIT, sre.CATEGORY_NOT_SPACE, sre.CATEGORY_NOT_WORD)


def _in_category(category: Any, character: str, flags: int) -> bool:
    match category:
        case sre.CATEGORY_DIGIT | sre.CATEGORY_NOT_DIGIT:
            inside = character.isdigit()
        case sre.CATEGORY_SPACE | sre.CATEGORY_NOT_SPACE:
            # \x1c to \x1f are blanks to Python, but not with the flag.
            inside = character in " \t\n\r\f\v" if flags & re.ASCII else character.isspace()
        case sre.CATEGORY_WORD | sre.CATEGORY_NOT_WORD:
            inside = character.isalnum() or character == "_"
        case _:
            raise KeyError(category)
    return inside != (category in _OPPOSITES)


def _bytes(encoded: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in encoded)
