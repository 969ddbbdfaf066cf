"""Printing: the answer on standard output, everything about it on standard error, each line whole.

What is printed here must already be safe (`safe_text`). Colours only where a person looks: not into files, not with
NO_COLOR set.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click
import msgspec

from windlass.cli.progress import aside


class Terminal:
    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._both_shown = self._out.isatty() and self._err.isatty()
        self._mid_line = False

    def text(self, text: str) -> None:
        """A piece of the answer, as it comes."""
        if text:
            self._out.write(text)
            self._out.flush()
            self._mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Finish a line of the answer that was begun."""
        if self._mid_line:
            self.text("\n")

    def line(self, text: str = "") -> None:
        """A line of its own on standard output."""
        self.end_line()
        self.text(text + "\n")

    def status(self, text: str, **style: Any) -> None:
        """A line on standard error. Never in the middle of the answer where both are seen on one screen."""
        with aside():
            if self._both_shown and self._mid_line:
                self._err.write("\n")
                self._mid_line = False
            self._err.write(styled(self._err, text, **style) + "\n")
            self._err.flush()

    def heading(self, text: str) -> None:
        self.line(styled(self._out, text, bold=True))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns in line; the last one is as long as it is."""
        widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
        for number, row in enumerate([header, *rows]):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            text = "  ".join(cells).rstrip()
            self.line(styled(self._out, text, bold=True) if number == 0 else text)

    def json(self, value: Any) -> None:
        """JSON in plain ASCII: the same value to a parser, and nothing in it can move a terminal's cursor."""
        self.line(json.dumps(msgspec.to_builtins(value), ensure_ascii=True))


class Hushed(Terminal):
    """The same terminal, for what is not said when nobody wants to hear it: the answer goes on, status lines do not."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def text(self, text: str) -> None:
        self._terminal.text(text)

    def end_line(self) -> None:
        self._terminal.end_line()

    def status(self, text: str, **style: Any) -> None:
        """Nothing."""


def styled(stream: TextIO, text: str, **style: Any) -> str:
    return click.style(text, **style) if style and has_colours(stream) else text


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
