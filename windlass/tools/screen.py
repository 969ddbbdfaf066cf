"""What people see of a command while it works: its output in pieces, not too often, not too much."""

import asyncio
import codecs
from collections.abc import Callable

from windlass import limits

_FULL = "\n[... more than this is not shown while it works ...]\n"


class Screen:
    """Hands text on, at most once in SHOW_SECONDS and SHOWN_CHARACTERS in all. After `close` nothing is shown."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may come in two pieces
        self._waiting: list[str] = []
        self._room = limits.SHOWN_CHARACTERS
        self._timer: asyncio.TimerHandle | None = None
        self._shown_at = float("-inf")

    def add(self, piece: bytes) -> None:
        if self._room <= 0:
            return
        text = self._decoder.decode(piece)[: self._room]
        if not text:
            return
        self._room -= len(text)
        self._waiting.append(text if self._room else text + _FULL)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # The first piece at once, later ones together.
            self._timer = loop.call_at(max(loop.time(), self._shown_at + limits.SHOW_SECONDS), self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._shown_at = asyncio.get_running_loop().time()
        text = "".join(self._waiting)
        self._waiting.clear()
        self._show(text)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._room = 0
