"""Typed lines, from everything standard input can be."""

import asyncio
import os
from pathlib import Path

from windlass import limits
from windlass.cli.console import typed_lines


async def all_lines(descriptor: int) -> list[str]:
    async with asyncio.timeout(10), typed_lines(descriptor) as lines:
        return [line async for line in lines]


async def test_lines_come_from_a_pipe_as_they_are_written() -> None:
    """A line cut in the middle is one line."""
    reader, writer = os.pipe()
    async with asyncio.timeout(10), typed_lines(reader) as lines:
        os.write(writer, "först\r\nse".encode())
        assert await anext(lines) == "först"
        os.write(writer, b"cond\n")
        assert await anext(lines) == "second"
        os.write(writer, b"unended")
        os.close(writer)
        assert [line async for line in lines] == ["unended"]
    os.close(reader)


async def test_lines_come_from_a_file(tmp_path: Path) -> None:
    """`windlass attach < commands.txt`: a file cannot be watched by the loop, only read."""
    (tmp_path / "commands").write_text("one\ntwo\n")
    descriptor = os.open(tmp_path / "commands", os.O_RDONLY)
    assert await all_lines(descriptor) == ["one", "two"]
    os.close(descriptor)


async def test_nothing_comes_from_the_null_device() -> None:
    """A service manager gives a program no input; it must end, not fail."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    assert await all_lines(descriptor) == []
    os.close(descriptor)


async def test_more_lines_than_the_bound_all_come(tmp_path: Path) -> None:
    """Reading pauses at the bound and goes on."""
    number = 20 * limits.CONSOLE_LINES
    reader, writer = os.pipe()
    os.write(writer, b"x\n" * number)
    os.close(writer)
    assert len(await all_lines(reader)) == number
    os.close(reader)


async def test_a_line_without_an_end_is_handed_over_at_its_bound(tmp_path: Path) -> None:
    """Else `windlass attach < /dev/zero` would eat the machine."""
    (tmp_path / "long").write_bytes(b"x" * (2 * limits.CONSOLE_LINE_BYTES))
    descriptor = os.open(tmp_path / "long", os.O_RDONLY)
    lines = await all_lines(descriptor)
    assert len(lines) > 1 and sum(map(len, lines)) == 2 * limits.CONSOLE_LINE_BYTES
    os.close(descriptor)
