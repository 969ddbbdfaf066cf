"""Log lines are for people: nobody else decides what their terminal does."""

import logging
from pathlib import Path

import pytest
import structlog

from windlass import logs
from windlass.log_file import LOG_NAME
from windlass.logs import escaped


def test_no_control_or_invisible_character_reaches_the_terminal() -> None:
    """A request's path could clear the operator's screen, or show another name than it has (A26 A41)."""
    event = escaped(None, "info", {"path": "/\x1b]0;pwned\x07\u202etxt", "status": 421})
    assert event == {"path": "/\\x1b]0;pwned\\x07\\u202etxt", "status": 421}


def test_a_traceback_keeps_its_lines() -> None:
    """Nobody could read it."""
    assert escaped(None, "error", {"exception": "one\ntwo\x07"}) == {"exception": "one\ntwo\\x07"}


def test_a_terminal_is_shown_less_than_the_file_keeps(tmp_path: Path) -> None:
    """What led to an error would be nowhere, because somebody happened to start the server by hand."""
    output = logs._Output(True, logging.WARNING)
    logs.keep_in(tmp_path)
    try:
        with pytest.raises(structlog.DropEvent):
            output(None, "info", {"event": "it began\x1b", "level": "info"})
    finally:
        logs.close()
    assert (tmp_path / LOG_NAME).read_text() == '{"event": "it began\\u001b", "level": "info"}\n'
