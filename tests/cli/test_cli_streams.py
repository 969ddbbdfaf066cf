"""What a shell can do to a program: close its streams, fill its disk, hand it bytes that are no text."""

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from command_line import environment, on_files
from windlass_program import Program

Start = Callable[..., Awaitable[Program]]
_BYTES = os.fsdecode(b"caf\xe9")  # as an argument arrives that is no UTF-8


def in_shell(home: Path, redirection: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A whole new process: which descriptors it has at its start is what this is about."""
    line = f'exec "$@" {redirection}'
    command = ["sh", "-c", line, "sh", sys.executable, "-m", "windlass", *arguments]
    return subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_an_empty_one(redirection: str, tmp_path: Path) -> None:
    """Jobs of a system's cron have no streams: every command would end in a traceback."""
    ended = in_shell(tmp_path, redirection, "logs", "--data-dir", str(tmp_path / "data"))
    assert (ended.returncode, "Traceback" in ended.stderr) == (1, False), ended.stderr
    assert "There is no log" in ended.stderr or "2>&-" in redirection


def test_a_full_disk_is_said_on_one_line(tmp_path: Path) -> None:
    """Whoever redirects into a full disk would be shown a traceback, and not what to do."""
    ended = in_shell(tmp_path, ">/dev/full", "completion", "bash")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == ["windlass: The output cannot be written: No space left on device."]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "-C", _BYTES, "hello"],
        ["run", _BYTES],
        ["sessions", "show", _BYTES],
        ["sessions", "search", _BYTES],
        ["runs", "--session", _BYTES],
    ],
    ids=["directory", "prompt", "id", "words", "option"],
)
async def test_an_argument_that_is_no_text_is_refused_in_a_sentence(arguments: list[str], start: Start) -> None:
    """A name from an old disk would be answered with a traceback."""
    program = await start(*arguments)
    assert await program.ended() == 1
    (line,) = program.err.splitlines()
    assert line.startswith("windlass: ") and "caf" in line and "UTF-8" in line


@pytest.mark.parametrize("url", ["http://[", "http://127.0.0.1:99999", "http://:x"])
def test_an_address_that_is_none_is_refused_in_a_sentence(url: str, tmp_path: Path) -> None:
    """A typing mistake would be answered with a traceback."""
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("secret")
    ended = on_files(tmp_path, "runs", "--url", url, "--token-file", str(token))
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("windlass: ") and url in line
