"""The last lines of a server's standard error: why it ended is mostly said there."""

from collections import deque

from windlass import limits
from windlass.mcp.pipe import Pipe


class LastWords:
    """Reads a pipe to its end, so that nobody who writes to it waits, and keeps the last few lines, shortened."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=limits.MCP_LAST_LINES)
        self._unfinished = b""

    async def follow(self, pipe: Pipe) -> None:
        while piece := await pipe.read():
            *whole, rest = (self._unfinished + piece).split(b"\n")
            self._lines += [line[: limits.MCP_LINE_CHARACTERS] for line in whole]
            self._unfinished = rest[: limits.MCP_LINE_CHARACTERS]

    def lines(self) -> list[str]:
        kept = [*self._lines, self._unfinished]
        return [line.decode("utf-8", "replace") for line in kept if line.strip()][-limits.MCP_LAST_LINES :]
