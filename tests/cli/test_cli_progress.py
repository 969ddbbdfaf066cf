"""Progress: a command that takes long says so, and leaves no trace of having said it."""

import asyncio
import io
import threading
from collections.abc import Callable

import pytest

from windlass import limits
from windlass.cli.progress import working
from windlass.cli.terminal import Terminal


class Screen(io.StringIO):
    """A stream that is a terminal or not, and on whose text a test can wait."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal
        self._written = threading.Condition()

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        with self._written:
            count = super().write(text)
            self._written.notify_all()
        return count

    def wait_for(self, condition: Callable[[str], bool]) -> None:
        with self._written:
            assert self._written.wait_for(lambda: condition(self.getvalue()), 20)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROGRESS_TERMINAL_SECONDS", 0.01)
    monkeypatch.setattr(limits, "PROGRESS_QUIET_SECONDS", 0.02)
    monkeypatch.setenv("COLUMNS", "40")


def test_on_a_terminal_the_line_goes_on_and_is_taken_away_at_the_end() -> None:
    """People stop a command that says nothing; and a line that stays would be in what they copy."""
    screen = Screen(terminal=True)
    with working("Trimming", screen):
        screen.wait_for(lambda text: text.count("Trimming (0 s)") > 1)
    assert screen.getvalue().endswith("\r" + " " * len("Trimming (0 s)") + "\r")
    assert "\x1b" not in screen.getvalue() and "\n" not in screen.getvalue()


def test_a_line_is_never_wider_than_the_terminal() -> None:
    """One that wraps cannot be taken away: half of it would stay on the screen."""
    screen = Screen(terminal=True)
    with working("x" * 100, screen):
        screen.wait_for(bool)
    assert max(len(piece) for piece in screen.getvalue().split("\r")) == 39


def test_elsewhere_it_is_one_line() -> None:
    """A script's log would fill with it."""
    screen = Screen(terminal=False)
    with working("Trimming", screen):
        screen.wait_for(bool)
    assert screen.getvalue() == "Trimming takes a while; it goes on.\n"


def test_what_takes_no_time_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command would flicker."""
    monkeypatch.setattr(limits, "PROGRESS_TERMINAL_SECONDS", 60.0)
    screen = Screen(terminal=True)
    with working("Trimming", screen):
        pass
    assert screen.getvalue() == ""


async def test_it_goes_on_beside_a_loop_and_ends_when_that_fails() -> None:
    """The line would be written into whatever comes after."""
    screen = Screen(terminal=True)
    with pytest.raises(ValueError, match="broke"), working("Asking", screen) as progress:
        await asyncio.to_thread(screen.wait_for, lambda text: "Asking" in text)
        progress.what = "Waiting"
        await asyncio.to_thread(screen.wait_for, lambda text: "Waiting" in text)
        raise ValueError("it broke")
    assert screen.getvalue().endswith(" \r")


def test_a_line_that_stays_does_not_begin_in_the_middle_of_it() -> None:
    """`Summing up (3 s)Started a server` is one line that nobody can read, and half of it stays."""
    screen = Screen(terminal=True)
    with working("Summing up", screen):
        screen.wait_for(lambda text: "Summing up (0 s)" in text)
        Terminal(screen, screen).status("Started a server.")
    before = screen.getvalue().partition("Started a server.\n")[0]
    assert before.endswith("\r" + " " * len("Summing up (0 s)") + "\r")


def test_what_is_done_within_something_else_is_said_in_its_line() -> None:
    """Two of them would write over each other."""
    screen = Screen(terminal=True)
    with working("Exporting", screen):
        with working("Starting a server"):
            screen.wait_for(lambda text: "Starting a server" in text)
        seen = len(screen.getvalue())
        screen.wait_for(lambda text: "Exporting" in text[seen:])
    assert screen.getvalue().endswith(" \r")
