"""Log lines are for people: nobody else decides what their terminal does."""

import logging
import os
import subprocess
import sys
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


def test_lines_that_nobody_reads_any_more_are_no_error() -> None:
    """`windlass serve 2>&1 | tee log`, and tee is gone: whatever was being decided would end at its log line."""
    program = """
import structlog
from windlass import logs
logs.configure("info")
for _ in range(100):
    structlog.get_logger().warning("x" * 1000)
print("went on")
"""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writing, text=True)
    finally:
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_a_disk_that_takes_no_line_is_no_error() -> None:
    """`windlass serve 2> log` on a full disk: the same. The line after it is tried again."""
    with open("/dev/full", "w") as full:
        line = logs._StandardError(full)
        line.info("lost")
        line.info("lost too")
        assert os.fstat(full.fileno()).st_rdev == os.stat("/dev/full").st_rdev
        with pytest.raises(OSError, match="No space"):
            full.close()
