"""Files that only their owner may read."""

import os
import stat
from pathlib import Path

import pytest

from windlass.server.private_files import NotPrivate, private_directory, read_private, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_file_is_the_owners_alone(tmp_path: Path) -> None:
    """Every user of the machine could read the token (A13)."""
    before = os.umask(0)
    try:
        write_private(tmp_path / "secret", b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "secret") == 0o600


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A reader could see half of it; and a link to the old one would be written through (A13)."""
    path = tmp_path / "secret"
    write_private(path, b"old and longer")
    with path.open("rb") as reader:
        write_private(path, b"new")
        assert (reader.read(), path.read_bytes()) == (b"old and longer", b"new")


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    """Who lays a link could have a file of the owner's overwritten, or read the secret elsewhere (A13)."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "secret").symlink_to("precious")
    write_private(tmp_path / "secret", b"x")
    assert (tmp_path / "precious").read_text() == "mine"
    assert not (tmp_path / "secret").is_symlink()


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    """Half-written secrets would pile up."""
    (tmp_path / "secret").mkdir()
    with pytest.raises(OSError):
        write_private(tmp_path / "secret", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("others", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_touch_is_not_read(others: int, tmp_path: Path) -> None:
    """What somebody else could have written would be believed (A13)."""
    write_private(tmp_path / "secret", b"x")
    (tmp_path / "secret").chmod(others)
    with pytest.raises(NotPrivate, match="chmod 600"):
        read_private(tmp_path / "secret")


def test_a_link_is_not_read(tmp_path: Path) -> None:
    """Another file of the owner's would be taken for a token, and shown (A13)."""
    write_private(tmp_path / "other", b"x")
    (tmp_path / "secret").symlink_to("other")
    with pytest.raises(NotPrivate, match="link"):
        read_private(tmp_path / "secret")


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    """The server would wait for ever for someone to write into it (A13 A22)."""
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(NotPrivate):
        read_private(tmp_path / "secret")


def test_a_directory_is_made_the_owners_alone(tmp_path: Path) -> None:
    """Others could look over the server's shoulder, or lay links there (A13)."""
    made = private_directory(tmp_path / "a" / "data")
    assert mode(made) == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    assert mode(private_directory(tmp_path / "open")) == 0o700


def test_a_directory_of_other_things_that_others_may_enter_is_left_alone(tmp_path: Path) -> None:
    """`--data-dir /tmp` would shut everybody else on the machine out of /tmp."""
    (tmp_path / "somebody's.txt").write_text("x")
    tmp_path.chmod(0o755)
    with pytest.raises(NotPrivate, match="another --data-dir"):
        private_directory(tmp_path)
    assert mode(tmp_path) == 0o755


def test_an_empty_directory_is_made_private(tmp_path: Path) -> None:
    """A data directory made beforehand by hand would stay open to others (A13)."""
    tmp_path.chmod(0o755)
    private_directory(tmp_path)
    assert mode(tmp_path) == 0o700
