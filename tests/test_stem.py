"""What test servers are forked from: the processes are as real as those that are started."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.testing.server_process import until
from windlass.testing.stem import Forked, Stem


@pytest.fixture
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
