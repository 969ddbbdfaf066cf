"""The server's log as a file: never in anyone's way, bounded, and readable by its owner alone."""

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from windlass import limits
from windlass.log_file import LOG_NAME, LogFile, generations


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def lines(data_dir: Path) -> list[dict[str, object]]:
    return [
        json.loads(line) for path in generations(data_dir) if path.exists() for line in path.read_text().splitlines()
    ]


def test_lines_are_filed_in_their_order_for_the_owner_alone(tmp_path: Path) -> None:
    """A13: paths and names of what people work on are in it."""
    file = LogFile(tmp_path)
    for number in range(100):
        file.write(json.dumps({"event": "e", "number": number}))
    file.close()
    assert [line["number"] for line in lines(tmp_path)] == list(range(100))
    assert stat.S_IMODE((tmp_path / LOG_NAME).stat().st_mode) == 0o600


def test_it_never_takes_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that runs for a year would fill the disk, and a full disk stops it."""
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 2_000)
    for number in range(60):
        file = LogFile(tmp_path)
        file.write(json.dumps({"number": number, "filling": "x" * 300}))
        file.close()
    sizes = [path.stat().st_size for path in generations(tmp_path)]
    assert len(os.listdir(tmp_path)) == limits.LOG_FILES and max(sizes) <= 2_000
    kept = [line["number"] for line in lines(tmp_path)]
    assert kept == list(range(60 - len(kept), 60)) and len(kept) > 10


def test_a_disk_that_hangs_holds_nobody_up_and_what_is_dropped_is_said(tmp_path: Path) -> None:
    """Every stream of the server would stop with the disk. The file is a pipe here, which blocks its writer."""
    os.mkfifo(tmp_path / LOG_NAME)
    file = LogFile(tmp_path, queue_characters=5 * len('{"number": 0}'))
    file.write('{"number": -1}')
    until(lambda: not file._queue._waiting)  # the thread has taken it, and hangs with it until somebody reads the pipe
    for number in range(9):
        file.write(json.dumps({"number": number}))
    reader = os.open(tmp_path / LOG_NAME, os.O_RDONLY)
    try:
        file.close()
        os.set_blocking(reader, False)
        found = [json.loads(line) for line in os.read(reader, 65536).splitlines()]
    finally:
        os.close(reader)
    assert [line["number"] for line in found if "number" in line] == [-1, 0, 1, 2, 3, 4]
    assert [line["dropped"] for line in found if "dropped" in line] == [4]


def test_a_file_that_cannot_be_written_is_said_once_and_counted_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody would know that what they look for was never written."""
    (tmp_path / LOG_NAME).symlink_to(tmp_path / "elsewhere")
    file = LogFile(tmp_path)
    file.write('{"number": 1}')
    file.close()
    assert capsys.readouterr().err.count("cannot be written") == 1
    assert not (tmp_path / "elsewhere").exists()  # A13: a link is not followed


def test_a_line_that_is_too_long_is_cut_and_stays_an_object(tmp_path: Path) -> None:
    """One error of a provider with a megabyte of HTML would push a day out of the log."""
    file = LogFile(tmp_path)
    file.write(json.dumps({"event": "it broke", "level": "error", "timestamp": "t", "html": "x" * 1_000_000}))
    file.close()
    (line,) = lines(tmp_path)
    assert (line["event"], line["level"], line["timestamp"]) == ("it broke", "error", "t")
    assert (tmp_path / LOG_NAME).stat().st_size < limits.LOG_LINE_CHARACTERS
