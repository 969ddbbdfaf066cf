"""Log lines are for people: nobody else decides what their terminal does."""

import logging
import os
import pty
import re
import select
import socket
import subprocess
import sys
import tty
from contextlib import suppress
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


SAYING = """
import os, structlog
from windlass import logs
logs.configure("info")
log = structlog.get_logger()
for number in range({lines}):
    log.warning(f"line {{number}} " + "x" * {characters})
os.write(1, b"went on")
if {waits}:
    os.read(0, 1)
    log.warning("it is read again")
"""


NEVER = "a word that nobody says"


def ends(kind: str) -> tuple[int, int]:
    """Where somebody reads, and what they gave for a standard error."""
    if kind == "terminal":
        reading, writing = pty.openpty()
        tty.setraw(writing)  # as many bytes as were written
        return reading, writing
    if kind == "socket":  # that of a service
        ours, theirs = socket.socketpair()
        return ours.detach(), theirs.detach()
    reading, writing = os.pipe()
    os.set_blocking(writing, kind == "pipe")
    return reading, writing


def read_until(descriptor: int, word: str) -> str:
    """What is said until a word comes, or until nobody is left who could say one."""
    content = b""
    with suppress(OSError):  # what a terminal says instead of an end
        while word.encode() not in content[-200_000:] and (piece := os.read(descriptor, 1 << 16)):
            content += piece
    return content.decode()


@pytest.mark.parametrize("kind", ["pipe", "pipe that never waits", "socket", "terminal"])
@pytest.mark.parametrize(("lines", "characters"), [(5_000, 1_000), (100, 50_000)])
def test_a_reader_that_sleeps_stops_nothing_and_is_told_what_it_missed(kind: str, lines: int, characters: int) -> None:
    """`windlass serve 2>&1 | less`, a laptop that sleeps: the next log line would stop the server, for everybody."""
    program = SAYING.format(lines=lines, characters=characters, waits=True)
    reading, writing = ends(kind)
    argv = [sys.executable, "-c", program]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing, bufsize=0)
    os.close(writing)
    assert child.stdin and child.stdout
    try:
        assert select.select([child.stdout], [], [], 60)[0], "it stands still at a line that nobody reads"
        begin = read_until(reading, "dropped")
        child.stdin.write(b"\n")
        said = (begin + read_until(reading, NEVER)).splitlines()
        assert child.wait(60) == 0
    finally:
        os.close(reading)
        child.kill()
        child.communicate()
    kept = [int(number) for line in said for number in re.findall(rf"line (\d+) x{{{characters}}}\b", line)]
    missed = [int(number) for line in said for number in re.findall(r'(?:windlass: |"dropped": )(\d+)', line)]
    assert kept == sorted(set(kept)) and 0 < len(kept) < lines
    assert sum(missed) == lines - len(kept)
    assert "it is read again" in said[-1] and len(said) == len(kept) + len(missed) + 1, "a line was cut"


@pytest.mark.parametrize("kind", ["pipe", "pipe that never waits", "socket", "terminal"])
def test_a_reader_that_is_only_slow_misses_nothing(kind: str) -> None:
    """An error storm says most in its first second, and the last lines of a server are those that one looks for."""
    program = SAYING.format(lines=4_000, characters=200, waits=False)
    reading, writing = ends(kind)
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writing) as child:
        os.close(writing)
        said = read_until(reading, NEVER).splitlines()
        os.close(reading)
    assert child.returncode == 0
    assert [int(re.findall(r"line (\d+) x", line)[0]) for line in said] == list(range(4_000))


def test_a_disk_that_takes_no_line_is_no_error() -> None:
    """`windlass serve 2> log` on a full disk: the same. The line after it is tried again."""
    with open("/dev/full", "w") as full:
        line = logs._File(full)
        line.info("lost")
        line.info("lost too")
        assert os.fstat(full.fileno()).st_rdev == os.stat("/dev/full").st_rdev
        with pytest.raises(OSError, match="No space"):
            full.close()
