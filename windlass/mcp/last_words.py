"""The last lines of a server's standard error: why it ended is mostly said there."""

from collections import deque
from collections.abc import Callable

from windlass import limits
from windlass.mcp.pipe import Pipe


class LastWords:
    """Reads a pipe to its end, so that nobody who writes to it waits, and keeps the last few lines, shortened."""

    # More than is told: a secret that was cut in two could not be found any more, and half of it would be told.
    _KEPT_BYTES = 4 * limits.MCP_LINE_CHARACTERS

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=limits.MCP_LAST_LINES)
        self._unfinished = b""

    async def follow(self, pipe: Pipe) -> None:
        while piece := await pipe.read():
            *whole, rest = (self._unfinished + piece).split(b"\n")
            self._lines += [line[: self._KEPT_BYTES] for line in whole]
            self._unfinished = rest[: self._KEPT_BYTES]

    def lines(self, redact: Callable[[str], str]) -> list[str]:
        kept = [line.decode("utf-8", "replace") for line in (*self._lines, self._unfinished) if line.strip()]
        return [redact(line)[: limits.MCP_LINE_CHARACTERS] for line in kept[-limits.MCP_LAST_LINES :]]
