"""What is kept of a server's standard error: bounded, and without secrets (A39)."""

import os

from windlass import limits
from windlass.mcp.last_words import LastWords
from windlass.mcp.pipe import Pipe
from windlass.mcp.spec import ServerSpec

SECRET = "sk-0123456789abcdefghijklmnopqrstuvwxyz"


async def test_a_secret_at_the_end_of_what_is_told_is_not_told_in_part() -> None:
    """A39: the line is cut in the middle of a key, and its first half stands in the log for everyone."""
    reading, writing = os.pipe()
    line = "x" * (limits.MCP_LINE_CHARACTERS - len(SECRET) // 2) + SECRET + "y" * 10 * limits.MCP_LINE_CHARACTERS
    os.write(writing, line.encode() + b"\n")
    os.close(writing)
    words, pipe = LastWords(), Pipe(reading)
    await words.follow(pipe)
    pipe.close()
    (told,) = words.lines(ServerSpec("a", ("a",), env={"KEY": SECRET}).redact)
    assert SECRET[:8] not in told and len(told) <= limits.MCP_LINE_CHARACTERS
