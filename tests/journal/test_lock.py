"""The lock of a data directory: one process at a time, and everyone else is told who."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from windlass.errors import Conflict
from windlass.journal.lock import only_writer


def test_whoever_comes_second_is_told_who_was_first(tmp_path: Path) -> None:
    """People would search for the process that they have to stop (I18)."""
    told = rf"\(process {os.getpid()}\) already uses"
    with only_writer(tmp_path), pytest.raises(Conflict, match=told), only_writer(tmp_path):
        pass


@pytest.mark.parametrize(("said", "told"), [(b"", "unknown"), (b"\xff\xfe", "..")])
def test_a_holder_that_has_not_said_who_it_is_still_holds(tmp_path: Path, said: bytes, told: str) -> None:
    """Between taking the lock and writing its name a server would not be noticed (I18)."""
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    try:
        os.write(descriptor, said)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match=rf"process {told}\) already uses"), only_writer(tmp_path):
            pass
    finally:
        os.close(descriptor)


def test_the_lock_is_free_again_after_its_holder_failed(tmp_path: Path) -> None:
    """A server that could not start would keep its own successor out."""
    with pytest.raises(ZeroDivisionError), only_writer(tmp_path):
        raise ZeroDivisionError
    with only_writer(tmp_path):
        pass


def test_the_lock_names_its_holder_and_nobody_before(tmp_path: Path) -> None:
    """A longer number of an older process would leave its last digits behind."""
    (tmp_path / "lock").write_text("99999999999999\n")
    with only_writer(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_is_private(tmp_path: Path) -> None:
    """Another account could take the lock, and keep the server from starting."""
    with only_writer(tmp_path):
        assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever can write the data directory could make us empty any file we may write (A13)."""
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    (tmp_path / "precious").write_text("words")
    with pytest.raises(Conflict, match="cannot be used"), only_writer(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "words"
