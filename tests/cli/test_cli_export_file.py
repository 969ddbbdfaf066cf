"""Where `windlass sessions export -o` writes: over a file whole, into a device or pipe, and never in place of one."""

import os
import pty
import stat
from pathlib import Path

import click
import pytest

from windlass.cli.export import _write


def test_a_terminal_is_written_to_and_stays_one() -> None:
    """`-o /dev/stdout` as root would replace the system's device by a file with a conversation in it."""
    master, slave = pty.openpty()
    try:
        _write(Path(os.ttyname(slave)), "a conversation\n")
        assert stat.S_ISCHR(os.stat(os.ttyname(slave)).st_mode)
        assert os.read(master, 100) == b"a conversation\r\n"
    finally:
        os.close(master)
        os.close(slave)


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """Whoever reads at its other end would wait for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _write(pipe, "a conversation\n")
        assert os.read(reader, 100) == b"a conversation\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode) and [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


def test_the_name_of_a_descriptor_is_written_to(tmp_path: Path) -> None:
    """`-o /dev/stdout >file` as root would take /dev/stdout away from every other program."""
    with (tmp_path / "file").open("w+") as file:
        _write(Path(f"/dev/fd/{file.fileno()}"), "a conversation\n")
        assert file.read() == "a conversation\n"


def test_a_link_to_a_file_is_replaced_and_its_file_left_alone(tmp_path: Path) -> None:
    """A link that somebody laid in a shared directory would choose which file is overwritten (A20)."""
    (tmp_path / "precious").write_text("holiday")
    (tmp_path / "out.md").symlink_to("precious")
    _write(tmp_path / "out.md", "a conversation\n")
    assert (tmp_path / "precious").read_text() == "holiday"
    assert (tmp_path / "out.md").read_text() == "a conversation\n" and not (tmp_path / "out.md").is_symlink()


def test_a_pipe_that_nobody_reads_is_said(tmp_path: Path) -> None:
    """The command would hang without a word."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(click.ClickException, match="cannot be written"):
        _write(tmp_path / "pipe", "a conversation\n")
