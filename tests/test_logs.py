"""Log lines are for people: nobody else decides what their terminal does."""

import fcntl
import json
import logging
import os
import select
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


@pytest.mark.parametrize("characters", [1_000, 40_000])
def test_a_reader_that_sleeps_stops_nothing_and_is_told_what_it_missed(characters: int) -> None:
    """`windlass serve 2>&1 | less`: once the pipe is full, the next log line would stop the server, for everybody."""
    program = f"""
import structlog
from windlass import logs
logs.configure("info")
for _ in range(100):
    structlog.get_logger().warning("x" * {characters})
print("went on", flush=True)
input()
structlog.get_logger().warning("it is read again")
"""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 65_536)
    argv = [sys.executable, "-c", program]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing, text=True)
    os.close(writing)
    with child, os.fdopen(reading) as sleeper:
        try:
            assert select.select([child.stdout], [], [], 60)[0], "it stands still at a line that nobody reads"
            os.set_blocking(reading, False)
            text = sleeper.read()
            os.set_blocking(reading, True)
            child.communicate("\n", timeout=60)
            *lines, told, last = (text + sleeper.read()).splitlines()
        finally:
            child.kill()
    kept = [line for line in lines if line.endswith("}")]
    assert kept and all(json.loads(line)["event"] == "x" * characters for line in kept)
    assert len(lines) - len(kept) == (characters > select.PIPE_BUF), "only a long line can be cut short"
    assert json.loads(told)["dropped"] == 100 - len(kept)
    assert json.loads(last)["event"] == "it is read again"


def test_a_disk_that_takes_no_line_is_no_error() -> None:
    """`windlass serve 2> log` on a full disk: the same. The line after it is tried again."""
    with open("/dev/full", "w") as full:
        line = logs._StandardError(full)
        line.info("lost")
        line.info("lost too")
        assert os.fstat(full.fileno()).st_rdev == os.stat("/dev/full").st_rdev
