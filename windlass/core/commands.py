"""Every command that a shell command line holds, found without running it.

Behind operators, in substitutions, and what programs like `env` and `sh -c` are given. What cannot be followed makes
the reading unclear, never wrong. Whether a line is one simple command is a stricter question (`simple_command.py`).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from windlass import limits
from windlass.core.programs import plainly, runs_others, takes_code
from windlass.core.simple_command import RESERVED, Words

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")


class Reading(NamedTuple):
    """`commands`: what can be seen, the words without their quotes. `is_clear`: that is all that would be run."""

    commands: tuple[Words, ...]
    is_clear: bool


def read(line: str) -> Reading:
    """Every command in a line: behind operators, in substitutions, and what `env`, `sh -c` and their like are given."""
    reader = _Reader(line, _Budget())
    reader.read_line()
    return Reading(tuple(dict.fromkeys(reader.found)), reader.is_clear)


class _Word:
    """A word that is being read. `is_computed`: the shell makes another of it."""

    def __init__(self) -> None:
        self.text = ""
        self.is_there = False  # "" is a word, nothing is none
        self.is_computed = False

    def add(self, text: str) -> None:
        self.text += text
        self.is_there = True

    def compute(self, text: str = "") -> None:
        self.add(text)
        self.is_computed = True


class _Command:
    def __init__(self) -> None:
        self.words: list[_Word] = []
        self.word = _Word()
        self.is_redirecting = False  # the next word is a file's name
        self.restarts: list[int] = []  # places at which some shells begin another command

    def end_word(self) -> None:
        if self.word.is_there:
            if not self.is_redirecting:
                self.words.append(self.word)
            self.is_redirecting = False
            self.word = _Word()


class _Budget:
    """How much may be read for one line in all: the same text may be met again inside itself."""

    def __init__(self) -> None:
        self._characters = limits.COMMAND_CHARACTERS * limits.COMMAND_DEPTH

    def take(self, line: str) -> bool:
        self._characters -= len(line)
        return self._characters >= 0


class _Reader:
    """Goes through a line once, from left to right. What it cannot follow makes the reading unclear, never wrong."""

    def __init__(self, line: str, budget: _Budget, depth: int = 0) -> None:
        self.found: list[Words] = []
        self.is_clear = len(line) <= limits.COMMAND_CHARACTERS and budget.take(line)
        self._line = line if self.is_clear else ""
        self._at = 0
        self._budget = budget
        self._depth = depth

    def read_line(self) -> None:
        while self._at < len(self._line):  # more than once if something is closed that was never opened
            self._commands("")

    def _next(self, count: int = 1) -> str:
        text = self._line[self._at : self._at + count]
        self._at += count
        return text

    def _ahead(self, text: str) -> bool:
        return self._line.startswith(text, self._at)

    # -- the language, as far as commands are concerned --

    def _commands(self, closing: str) -> None:
        """Commands up to what closes them, which is taken as well."""
        command = _Command()
        while self._at < len(self._line):
            char = self._next()
            if char == closing:
                break
            if char == "&" and self._ahead(">"):
                # One redirection to bash, and the end of a command to others: it is read in both ways.
                self._redirect(self._next(), command)
                command.restarts.append(len(command.words))
                self.is_clear = self.is_clear and len(command.restarts) <= limits.COMMAND_DEPTH
            elif char in "\n;&|)":
                self._end(command)
                command = _Command()
            elif char == "(":
                self._end(command)
                command = _Command()
                self._inside(")")
            else:
                self._character(char, command)
        else:
            self.is_clear = self.is_clear and not closing
        self._end(command)

    def _character(self, char: str, command: _Command) -> None:
        word = command.word
        match char:
            case " " | "\t":
                command.end_word()
            case "#" if not word.is_there:
                self._take_until("\n", required=False)
                self._at -= 1  # the line's end ends the command
            case "<" | ">":
                self._redirect(char, command)
            case "'":
                word.add(self._take_until("'"))
            case '"':
                self._double_quoted(word)
            case "\\":
                self._escape(word)
            case "$" | "`":
                self._substitute(char, word)
            case "*" | "?" | "[":
                word.compute(char)
            case "{":
                self._brace(word)
            case _:
                word.add(char)

    def _inside(self, closing: str) -> None:
        if self._depth >= limits.COMMAND_DEPTH:
            self.is_clear = False
            self._at = len(self._line)
            return
        self._depth += 1
        self._commands(closing)
        self._depth -= 1

    def _take_until(self, end: str, required: bool = True) -> str:
        """The text up to `end`, which is taken as well."""
        found = self._line.find(end, self._at)
        if found < 0:
            self.is_clear = self.is_clear and not required
            found = len(self._line)
        text = self._line[self._at : found]
        self._at = found + len(end)
        return text

    def _double_quoted(self, word: _Word) -> None:
        word.add("")
        while self._at < len(self._line):
            char = self._next()
            if char == '"':
                return
            if char in "$`":
                self._substitute(char, word, is_quoted=True)
            elif char == "\\" and self._line[self._at : self._at + 1] in ("$", "`", '"', "\\", "\n"):
                self._escape(word)
            else:
                word.add(char)
        self.is_clear = False

    def _escape(self, word: _Word) -> None:
        char = self._next()
        if char != "\n":
            word.add(char)
        if char in ("", "`"):
            self.is_clear = False  # a backtick inside backticks

    def _substitute(self, char: str, word: _Word, is_quoted: bool = False) -> None:
        if char == "`":
            word.compute()
            self._inside("`")
        elif self._ahead("("):
            self._next()
            word.compute()
            self._inside(")")
        elif self._ahead("'") and not is_quoted:
            self._next()
            self._escaped(word)
        else:
            word.compute("$")

    def _escaped(self, word: _Word) -> None:
        """$'...': a quote with a backslash before it does not end it, and its escapes could spell anything."""
        word.compute()
        while self._at < len(self._line):
            char = self._next()
            if char == "'":
                return
            word.add(self._next() if char == "\\" else char)
        self.is_clear = False

    def _brace(self, word: _Word) -> None:
        if self._ahead("}"):
            self._next()
            word.add("{}")  # what find and xargs replace
        else:
            word.compute("{")

    def _redirect(self, char: str, command: _Command) -> None:
        if command.word.text.isdigit():
            command.word = _Word()  # the number of a descriptor
        command.end_word()
        if self._ahead("("):
            self._next()
            self._inside(")")
            command.word.compute()  # what follows at once belongs to the word: `<(a)#` begins no comment
            return
        if char == "<" and self._ahead("<"):
            self.is_clear = False  # text that may be a program's input, and so commands
        while self._at < len(self._line) and self._line[self._at] in "<>&|":
            self._next()
        command.is_redirecting = True

    # -- what a command amounts to --

    def _end(self, command: _Command) -> None:
        command.end_word()
        for place in command.restarts[: limits.COMMAND_DEPTH]:
            self._add(tuple(word.text for word in command.words[place:]))
        skipped = _preface([word.text for word in command.words])
        for word in command.words[:skipped]:
            self._read_value(word.text.partition("=")[2])  # GIT_SSH_COMMAND='...' git fetch
        words = command.words[skipped:]
        if not words:
            return
        texts = tuple(word.text for word in words)
        self._add(texts)
        if words[0].is_computed or takes_code(texts):
            self.is_clear = False
        if runs_others(texts):
            self._look_into(texts[1:], any(word.is_computed for word in words))

    def _add(self, words: Words) -> None:
        words = words[_preface(words) :]
        if not words:
            return
        if len(self.found) >= limits.COMMAND_PARTS:
            self.is_clear = False
            return
        self.found.append(words)
        plain = plainly(words)
        if plain != words:
            self.found.append(plain)

    def _look_into(self, words: Words, is_computed: bool) -> None:
        """Whichever word the inner command begins with; and every word that could be a command line itself."""
        if len(words) > limits.COMMAND_PARTS:
            self.is_clear = False  # `_add` would say so too, after a copy of the rest for each of them
            return
        self.is_clear = self.is_clear and not is_computed
        for start in range(len(words)):
            self._add(words[start:])
        for word in words:
            for line in (word, word.partition("=")[2].lstrip("!"), *_attached(word)):
                self._read_value(line)

    def _read_value(self, line: str) -> None:
        """What may be a command line itself."""
        if not _is_line(line):
            return
        if self._depth >= limits.COMMAND_DEPTH:
            self.is_clear = False
            return
        inner = _Reader(line, self._budget, self._depth + 1)
        inner.read_line()
        for words in inner.found:
            self._add(words)
        self.is_clear = self.is_clear and inner.is_clear


def _preface(words: Sequence[str]) -> int:
    """How many words stand before the program: of the shell's own language, and variables that are set for it."""
    for place, word in enumerate(words):
        if word not in RESERVED and _ASSIGNMENT.match(word) is None:
            return place
    return len(words)


def _attached(word: str) -> list[str]:
    """The value of a short option, which may stand in the same word and behind others: `-S'rm x'`, `-iS'rm x'`."""
    letters = re.match(r"-[A-Za-z0-9]{0,8}", word)  # of `--long` the first dash, behind which there is nothing
    return [] if letters is None else [word[place:] for place in range(2, letters.end() + 1)]


def _is_line(text: str) -> bool:
    """Whether it is more than a word."""
    return re.search(r"[\s;&|()<>$`'\"\\{}]", text) is not None
