"""`windlass` run once to its end, forked from what is loaded already: on plain files, or on a terminal of its own."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

import windlass
from windlass.testing import canary
from windlass.testing.server_process import ServerProcess

_SECONDS = 60.0


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Nothing of whoever runs the tests, but where programs and our package are."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(Path(windlass.__file__).parent.parent),
        "WINDLASS_LOCAL_SERVERS": "",
        **canary.ENVIRONMENT,
        **variables,
    }


def on_files(home: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    assert ServerProcess.stem is not None
    ended = ServerProcess.stem.run(["windlass", *arguments], environment(home, **variables))
    canary.check_text(ended.stdout + ended.stderr, "what the program printed")
    return ended


def on_terminal(home: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """Exit code, and everything it wrote on the terminal that is all of its input and output."""
    assert ServerProcess.stem is not None
    master, slave = pty.openpty()
    try:
        variables = {"TERM": "xterm-256color", "COLUMNS": "100", **variables}
        process = ServerProcess.stem.fork(["windlass", *arguments], environment(home, **variables), slave, input=slave)
        os.close(slave)
        said = b""
        deadline = time.monotonic() + _SECONDS
        while True:
            ended = process.poll() is not None
            if select.select([master], [], [], 0.0 if ended else 0.05)[0]:
                try:
                    piece = os.read(master, 65536)
                except OSError:  # Linux says so when the last one who held the other end is gone
                    piece = b""
                said += piece
                if piece:
                    continue
            if ended:
                break
            if time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"windlass {' '.join(arguments)} did not end:\n{said.decode(errors='replace')}")
    finally:
        os.close(master)
    text = said.decode(errors="replace")
    canary.check_text(text, "what the program printed")
    return process.returncode or 0, text
