"""What test servers are forked from: the processes are as real as those that are started."""

import asyncio
import contextlib
import os
import select
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.testing import forked_program
from windlass.testing.server_process import WAIT_SECONDS, until
from windlass.testing.stem import Forked, Stem


@pytest.fixture(scope="module")
def stem() -> Iterator[Stem]:
    made = Stem("windlass.testing.watched_program")
    yield made
    made.close()


def fork(stem: Stem, log: Path, *arguments: str, **environment: str) -> Forked:
    with log.open("wb") as file:
        return stem.fork(["windlass", *arguments], {**os.environ, **environment}, file.fileno())


async def test_a_forked_program_has_its_own_arguments_output_and_exit_code(stem: Stem, tmp_path: Path) -> None:
    """Else tests would look at another server's log, or take a failed start for a clean one."""
    good = fork(stem, tmp_path / "good", "--version")
    bad = fork(stem, tmp_path / "bad", "no-such-command")
    await until(lambda: good.poll() is not None and bad.poll() is not None, "both have ended")
    assert (good.returncode, bad.returncode) == (0, 2)
    assert "0." in (tmp_path / "good").read_text()
    assert "no-such-command" in (tmp_path / "bad").read_text()


async def test_a_signal_ends_a_forked_process_and_is_its_exit_code(stem: Stem, tmp_path: Path) -> None:
    """Else a test that kills its server would not know that it is gone."""
    served = fork(stem, tmp_path / "log", "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"))
    await until(lambda: b"is ready at" in (tmp_path / "log").read_bytes(), "the server is ready")
    served.kill()
    await until(lambda: served.poll() is not None, "it is gone")
    assert served.returncode == -signal.SIGKILL


async def test_a_forked_process_sees_the_environment_it_was_given_and_no_other(stem: Stem, tmp_path: Path) -> None:
    """Else a key of the person who runs the tests would be in every server."""
    home = tmp_path / "home"
    doctor = fork(stem, tmp_path / "log", "doctor", HOME=str(home), XDG_DATA_HOME=str(home / "data"))
    await until(lambda: doctor.poll() is not None, "it has ended")
    assert str(home / "data") in (tmp_path / "log").read_text()


def test_what_was_forked_does_not_outlive_the_test_process(tmp_path: Path) -> None:
    """A suite that is killed would leave its servers behind, and they would be in the way of the next one."""
    made = Stem("windlass.testing.watched_program")
    script = tmp_path / "sleep.py"
    script.write_text("import time; time.sleep(600)")
    with (tmp_path / "log").open("wb") as log:
        sleeper = made.fork([str(script)], dict(os.environ), log.fileno(), is_script=True)
    ended = os.pidfd_open(sleeper.pid)
    try:
        made.close()  # all that a stem is told of the death of a test process
        assert select.select([ended], [], [], WAIT_SECONDS)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(ended, signal.SIGKILL)
        os.close(ended)


# -- what is as in a Python that is started from nothing ---------------------------------------------------------------

PIECES = {
    "words": "raise SystemExit('no luck')",
    "code": "raise SystemExit(7)",
    "error": "{}['missing']",
    "interrupt": "raise KeyboardInterrupt",
    "thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
    "exit": "import atexit; atexit.register(print, 'goodbye')",
    "clock": "import time; print(time.localtime(0).tm_hour)",
    "bytes": "import sys; print(ascii(sys.argv[1:]), ascii(sys.stdin.read()))",
    "streams": "from sys import *; print([(s.encoding, s.errors, s.line_buffering) for s in (stdin, stdout, stderr)])",
    "place": "import os, sys; print(os.getcwd(), sys.argv[0], sys.path[0], __name__, __file__)",
    "descriptors": "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])",
    "signals": "from signal import *; print([getsignal(n) for n in valid_signals()], pthread_sigmask(SIG_BLOCK, []))",
    "group": "import os; print(os.getpgrp(), os.getsid(0))",
    "environment": "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))",
    "full": "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); print('lost')",
}


@pytest.mark.parametrize("piece", PIECES)
async def test_a_forked_script_is_as_one_that_was_started(piece: str, stem: Stem, tmp_path: Path) -> None:
    """Else tests of commands would pass on what nobody ever runs, or fail on it."""
    script = tmp_path / "script.py"
    script.write_text(PIECES[piece])
    environment = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo"}
    words = os.fsdecode(b"caf\xe9")
    given = b"caf\xe9\n"
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), words), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, cwd=tmp_path
    )
    plain = await asyncio.wait_for(started.communicate(given), WAIT_SECONDS)
    forked = await forked_program.fork(stem, [str(script), words], environment, tmp_path, stdin=PIPE, is_script=True)
    ours = await asyncio.wait_for(forked.communicate(given), WAIT_SECONDS)
    assert (forked.returncode, ours[0]) == (started.returncode, plain[0])
    assert ours[1].splitlines()[-1:] == plain[1].splitlines()[-1:]


async def test_a_forked_process_that_is_killed_is_heard_of_while_others_live(stem: Stem, tmp_path: Path) -> None:
    """Else a test would wait for a program that is gone."""
    script = tmp_path / "script.py"
    script.write_text("import signal; print('here', flush=True); signal.pause()")
    one, other = [await forked_program.fork(stem, [str(script)], {}, is_script=True) for _ in range(2)]
    for program in (one, other):
        assert program.stdout is not None
        assert await asyncio.wait_for(program.stdout.readline(), WAIT_SECONDS) == b"here\n"
    one.kill()
    assert (await asyncio.wait_for(one.wait(), WAIT_SECONDS), other.returncode) == (-signal.SIGKILL, None)
    other.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(other.communicate(), WAIT_SECONDS) == (b"", b"")
    assert other.returncode == -signal.SIGTERM
