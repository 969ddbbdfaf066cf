"""`windlass logs`: the server's log for people and scripts, also while it is written and turned over."""

import json
import os
import select
import signal
import time
from pathlib import Path

import pytest
from command_line import environment, on_files, on_terminal

from windlass import limits
from windlass.cli.logs import LogTail, described, is_at_least
from windlass.log_file import LOG_NAME, LogFile
from windlass.testing.server_process import ServerProcess


def write(data_dir: Path, *events: str, level: str = "info", **fields: object) -> None:
    file = LogFile(data_dir)
    for event in events:
        file.write(json.dumps({"event": event, "level": level, "timestamp": "2026-01-02T03:04:05Z", **fields}))
    file.close()


def events(tail: LogTail) -> list[str]:
    return [json.loads(line)["event"] for line in tail.new_lines()]


def test_each_line_comes_once_in_order_over_any_number_of_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever follows a log through the minute in which it is turned over must not miss that minute."""
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 500)
    tail = LogTail(tmp_path)
    seen = []
    for number in range(40):
        write(tmp_path, str(number))
        if number % 10 == 0:  # turned over twice meanwhile
            seen += events(tail)
    seen += events(tail)
    tail.close()
    assert seen == [str(number) for number in range(40)]


def test_a_line_that_is_half_written_waits_for_its_other_half(tmp_path: Path) -> None:
    """It would be shown as rubbish."""
    path = tmp_path / LOG_NAME
    path.write_text('{"event": "one"}\n{"eve')
    tail = LogTail(tmp_path)
    assert events(tail) == ["one"]
    with path.open("a") as file:
        file.write('nt": "two"}\n')
    assert events(tail) == ["two"]
    tail.close()


def test_a_line_for_people_has_its_time_level_event_and_fields() -> None:
    """JSON is for programs."""
    fields = {"timestamp": "x", "level": "warning", "event": "request", "status": 421, "path": "/a b"}
    assert described(fields) == ["x  warning   request  status=421  path=/a b"]


def test_no_control_character_of_the_log_reaches_the_terminal() -> None:
    """A26 A41: a path that somebody asked for could clear the screen of whoever looks at the log."""
    shown = described({"event": "a\x1b[2J", "path": "\u202ex", "exception": "one\n\x1btwo", "b\x07": {"k": "\x1b"}})
    assert not [c for c in "".join(shown) if not c.isprintable()]
    assert shown[1:] == ["    one", "    <U+001B>two"]


@pytest.mark.parametrize(("line", "shown"), [(b'{"level":"info"}', False), (b'{"level":"error"}', True), (b"?", True)])
def test_a_level_leaves_out_what_is_less_grave(line: bytes, shown: bool) -> None:
    """What cannot be judged is shown: it may be what somebody looks for."""
    assert is_at_least(line, "warning") is shown


def test_the_last_lines_are_shown_without_a_server(tmp_path: Path) -> None:
    """The log is needed most when the server does not start."""
    write(tmp_path, "one", "two", "three", path="/x")
    ended = on_files(tmp_path, "logs", "-n", "2", "--data-dir", str(tmp_path))
    assert [line.split()[3] for line in ended.stdout.splitlines()] == ["two", "three"]
    as_json = on_files(tmp_path, "logs", "-n", "1", "--json", "--data-dir", str(tmp_path))
    assert json.loads(as_json.stdout)["path"] == "/x"


def test_without_a_log_one_line_says_so(tmp_path: Path) -> None:
    """An empty screen says nothing."""
    ended = on_files(tmp_path, "logs", "--data-dir", str(tmp_path))
    assert ended.returncode == 1 and "There is no log" in ended.stderr


def test_what_went_wrong_is_coloured_on_a_terminal(tmp_path: Path) -> None:
    """It is what one looks for."""
    write(tmp_path, "it broke", level="error")
    assert "\x1b[31m" in on_terminal(tmp_path, "logs", "--data-dir", str(tmp_path))[1]


def test_a_followed_log_shows_what_is_written_later(tmp_path: Path) -> None:
    """`-f` would be a way to wait for nothing."""
    write(tmp_path, "before")
    reading, writing = os.pipe()
    assert ServerProcess.stem is not None
    argv = ["windlass", "logs", "-f", "--data-dir", str(tmp_path)]
    process = ServerProcess.stem.fork(argv, environment(tmp_path), writing)
    os.close(writing)
    try:
        assert "before" in said(reading)
        write(tmp_path, "after")
        assert "after" in said(reading)
    finally:
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            select.select([ServerProcess.stem.fileno()], [], [], 0.1)
        os.close(reading)
    assert process.returncode == 130


def said(descriptor: int) -> str:
    assert select.select([descriptor], [], [], 20)[0], "nothing was printed"
    return os.read(descriptor, 65536).decode()


async def test_a_server_writes_its_log_and_no_secret_into_it(tmp_path: Path) -> None:
    """A39: a ticket or a token in a log that is sent to somebody with a question lets them in."""
    async with ServerProcess(tmp_path) as server:
        data = server.data_dir

        ended = on_files(tmp_path, "pair", "--here", "--json", "--data-dir", str(data))
        ticket = json.loads(ended.stdout)["url"].partition("ticket=")[2]
        token = server.token
    text = (data / LOG_NAME).read_text()
    assert "server started" in text and "server leaves" in text and "/v1/tickets" in text
    assert ticket and ticket not in text and token not in text
