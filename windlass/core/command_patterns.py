"""Patterns on command lines: what an allow covers, narrowly; what a deny reaches, widely.

An allow must not be widened by the shell, nor by a program that runs others, so it is compared word by word with one
simple command. A deny must not be got around by them, so it is compared with every command that a line holds.
"""

import re
from fnmatch import fnmatchcase
from functools import cached_property

from windlass.core.commands import Reading, read
from windlass.core.programs import name_of, runs_others
from windlass.core.simple_command import Words, simple

_WILD = re.compile(r"[*?\[]")
_QUOTES = str.maketrans("", "", "'\"\\")


class CommandLine:
    """One line, read at most once for all patterns that it is compared with."""

    def __init__(self, line: str) -> None:
        self.line = line

    @cached_property
    def words(self) -> Words | None:
        """Those of the one simple command that it is, if it is one that a pattern may cover."""
        words = simple(self.line)
        return None if words is None or runs_others(words) else words

    def covered(self, pattern: str) -> bool:
        """Whether an allow with this pattern is about this line."""
        if self.words is None:
            return False
        return pattern == self.line or _covers(pattern.split(), self.words)

    def reached(self, pattern: str) -> bool:
        """Whether a deny (or an ask) with this pattern is about anything in this line.

        What cannot be read to its end is reached if the words of the pattern are anywhere in it: nobody can say that it
        is not run.
        """
        if fnmatchcase(self.line, pattern):
            return True
        fewer = pattern.removesuffix(" *")  # `rm *` is also about a bare `rm`
        if any(fnmatchcase(command, pattern) or fnmatchcase(command, fewer) for command in self._commands):
            return True
        return not self._reading.is_clear and self._names(pattern)

    @cached_property
    def _reading(self) -> Reading:
        return read(self.line)

    @cached_property
    def _commands(self) -> list[str]:
        return [" ".join(words) for words in self._reading.commands]

    def _names(self, pattern: str) -> bool:
        """Whether every word of the pattern that is more than a star is somewhere in the line."""
        program, *others = pattern.split() or [""]
        wanted = [word for word in (name_of(program), *others) if re.search(r"\w", word)]
        text = self.line.translate(_QUOTES)
        # As bare words, and as whole ones: a pattern may name a path, an address or `--option=value`.
        said = {*re.findall(r"[\w.+\-]+", text), *re.split(r"[\s;&|()<>$`{},]+", text)}
        return bool(wanted) and all(any(fnmatchcase(word, want) for word in said) for want in wanted)


def names_program(pattern: str) -> bool:
    """Whether it says which program it is about."""
    words = pattern.split()
    return bool(words) and _WILD.search(words[0]) is None


def _covers(wanted: list[str], words: Words) -> bool:
    last = wanted[-1] if wanted else ""
    takes_options = last == "-*"
    # A star at the very end also stands for more words, unless it ends a path: `cat src/*` is about one file in src.
    takes_more = last.endswith("*") and "/" not in last
    if last in ("*", "-*"):
        wanted = wanted[:-1]
    if not wanted or len(words) < len(wanted) or (len(words) > len(wanted) and not takes_more):
        return False
    named, rest = words[: len(wanted)], words[len(wanted) :]
    if not all(_fits(*pair, is_program=place == 0) for place, pair in enumerate(zip(named, wanted, strict=True))):
        return False
    has_operand = any(not word.startswith("-") for word in named[1:])
    # `git *` is about what git is told to do. Options before that change git itself: `git -c core.pager=...`.
    return has_operand or takes_options or not rest or not rest[0].startswith("-")


def _fits(word: str, pattern: str, is_program: bool) -> bool:
    if _WILD.search(pattern) is None:
        return word == pattern
    if word.startswith("-") and not pattern.startswith("-"):
        return False
    if ".." in re.split("[/=]", word):
        return False  # `cat src/*` is about what is in src
    if is_program and word.count("/") != pattern.count("/"):
        return False
    return fnmatchcase(word, pattern)
