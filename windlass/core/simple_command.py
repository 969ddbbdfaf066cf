"""One simple command: a line of which the shell runs exactly one program, with exactly the words that are read here."""

import re

from windlass import limits

Words = tuple[str, ...]

_CLAUSES = ("if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in")
RESERVED = frozenset(("!", "{", "}", "[[", "]]", *_CLAUSES))  # words of the shell's own language
# What the shell takes as it stands: nothing that ends a word, expands, or means something else.
_BARE = r"[\w@%+=:,./^~#!\-]|[^\x00-\x7f]"
_QUOTED = r"""'[^']*'|"(?:[^"$`\\]|\\[^"$`\\])*\""""
_WORD = re.compile(rf"(?:{_BARE}|{_QUOTED})+", re.ASCII)
_PIECE = re.compile(rf"({_QUOTED})|({_BARE})", re.ASCII)
_TILDE = re.compile(r"(^|[=:])~")


def simple(line: str) -> Words | None:
    """The words of a line that is one simple command, without their quotes; None for any other line."""
    if len(line) > limits.COMMAND_CHARACTERS or not line.replace("\t", " ").isprintable():
        return None
    raw_words = _raw_words(line)
    if raw_words is None or any(raw.startswith("#") or _TILDE.search(raw) for raw in raw_words):
        return None
    words = tuple("".join(quoted[1:-1] or bare for quoted, bare in _PIECE.findall(raw)) for raw in raw_words)
    # A program without a name, a variable that is set, or a word of the shell's own.
    if not words or not words[0] or "=" in words[0] or words[0] in RESERVED:
        return None
    return words


def _raw_words(line: str) -> list[str] | None:
    """The words as they stand in the line; None if there is anything else in it."""
    found: list[str] = []
    at, end = 0, len(line)
    while at < end:
        if line[at] in " \t":
            at += 1
            continue
        word = _WORD.match(line, at)
        if word is None or (word.end() < end and line[word.end()] not in " \t"):
            return None
        found.append(word.group())
        at = word.end()
    return found
