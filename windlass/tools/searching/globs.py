"""Patterns for paths: `*`, `?`, `[...]`, `**` and braces. For the `glob` and `grep` tools, and for .gitignore.

A path is matched name by name, and a name without going back over what a `*` has taken, so that no pattern takes long.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from windlass import limits

_POSIX = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "blank": r" \t", "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9a-fA-F", "cntrl": r"\x00-\x1f\x7f", "graph": "!-~",
    "print": " -~",
}  # fmt: skip


class GlobPattern:
    """A pattern for paths relative to a directory.

    One without a slash is for names at any depth, one with a slash for whole paths. Raises ValueError, in words for a
    model, for one that makes no sense.
    """

    def __init__(self, pattern: str) -> None:
        self._alternatives = [_alternative(plain) for plain in expanded(pattern)]

    def matches(self, path: str) -> bool:
        return any(alternative.matches(path) for alternative in self._alternatives)


class PathPattern:
    """Names between slashes. `**` as one of them stands for any number of names; at the end, for at least one."""

    def __init__(self, pattern: str) -> None:
        names = pattern.split("/")
        if names[-1] == "**":
            names.append("*")
        self._names = [None if name == "**" else name_pattern(name) for name in names]

    def matches(self, path: str) -> bool:
        return _fits(self._names, path.split("/"))


class _AnyDepth:
    def __init__(self, pattern: str) -> None:
        self._name = name_pattern(pattern)

    def matches(self, path: str) -> bool:
        return self._name.fullmatch(path.rpartition("/")[2]) is not None


def _alternative(pattern: str) -> PathPattern | _AnyDepth:
    plain = re.sub(r"/{2,}", "/", pattern).removeprefix("./").removesuffix("/")
    if ".." in plain.split("/"):
        raise ValueError(f"{pattern} leads out of the directory; `..` is not possible in a pattern.")
    if not plain:
        raise ValueError("The pattern is empty.")
    return PathPattern(plain.removeprefix("/")) if "/" in plain else _AnyDepth(plain)


def _fits(names: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """The classic walk with one place to go back to: the last `**`, which then takes one name more."""
    at = here = 0
    retry_at, retry_here = -1, 0
    while here < len(path):
        name = names[at] if at < len(names) else ""
        if name is None:
            retry_at, retry_here = at, here
            at += 1
        elif not isinstance(name, str) and name.fullmatch(path[here]):
            at, here = at + 1, here + 1
        elif retry_at >= 0:
            retry_here += 1
            at, here = retry_at + 1, retry_here
        else:
            return False
    return all(name is None for name in names[at:])


def name_pattern(pattern: str) -> re.Pattern[str]:
    """One name's pattern as a regular expression; raises ValueError."""
    pieces = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append("")  # several in a row are one
            continue
        if character == "[":
            piece, at = _set(pattern, at)
        elif character == "\\":
            if at == len(pattern):
                raise ValueError(f"{pattern} ends with a backslash.")
            piece, at = re.escape(pattern[at]), at + 1
        else:
            piece = "." if character == "?" else re.escape(character)
        pieces[-1] += piece
    # Atomic: the first place where a piece fits is as good as any later one, so there is nothing to go back for.
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    last = f".*{pieces[-1]}" if len(pieces) > 1 else ""
    return re.compile(pieces[0] + middle + last, re.DOTALL)


def _set(pattern: str, at: int) -> tuple[str, int]:
    """The set that begins after the bracket before `at`, and where it ends."""
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    parts = ""
    first = at
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        found = re.compile(r"\[:(\w+):\]").match(pattern, at)
        if found:
            if found[1] not in _POSIX:
                raise ValueError(f"There is no set of characters {found[0]}.")
            parts, at = parts + _POSIX[found[1]], found.end()
            continue
        low, at = _member(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(pattern, at + 1)
            if low <= high:
                parts += f"{re.escape(low)}-{re.escape(high)}"
        else:
            parts += re.escape(low)
    if at >= len(pattern):
        raise ValueError(f"{pattern} has a [ without its ].")
    if not parts:
        return "." if negated else "(?!)", at + 1  # only ranges that hold nothing
    return f"[{'^' if negated else ''}{parts}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1


def expanded(pattern: str) -> list[str]:
    """What the braces mean: `*.{c,h}` is `*.c` and `*.h`."""
    waiting, done = [pattern], []
    while waiting:
        current = waiting.pop()
        found = _brace(current)
        if found is None:
            done.append(current)
        else:
            start, end, options = found
            waiting += [current[:start] + option + current[end:] for option in reversed(options)]
        if len(waiting) + len(done) > limits.GLOB_ALTERNATIVES:
            raise ValueError(f"The braces mean more than {limits.GLOB_ALTERNATIVES} patterns. Use several calls.")
    return done


def _brace(pattern: str) -> tuple[int, int, list[str]] | None:
    """The first pair of braces with a comma between: where it is and what it offers. Other braces are characters."""
    # In one go: to look for the end of each of a thousand open braces would take seconds.
    open_ones: list[list[int]] = []  # where each begins, and where its commas are
    best: list[int] | None = None
    for found in re.finditer(r"\\.|[{,}]", pattern, re.DOTALL):
        at = found.start()
        if found[0] == "{":
            open_ones.append([at])
        elif found[0] == "," and open_ones:
            open_ones[-1].append(at)
        elif found[0] == "}" and open_ones:
            pair = [*open_ones.pop(), at]
            if len(pair) > 2 and (best is None or pair[0] < best[0]):
                best = pair
    if best is None:
        return None
    return best[0], best[-1] + 1, [pattern[left + 1 : right] for left, right in pairwise(best)]
