"""Texts that were made into HTML, remembered: everyone who opens a conversation asks for the same ones."""

import asyncio
import hashlib
from collections import OrderedDict

from windlass import limits
from windlass.server.markdown_html import to_html
from windlass.server.turns import Turns


class Rendered:
    """What was made of the texts that were asked for last. Belongs to the event loop."""

    def __init__(self) -> None:
        self._html: OrderedDict[bytes, str] = OrderedDict()
        self._size = 0
        # It is all computing: two at once would take turns, and leave no thread for whoever wants to read a file.
        self._turns = Turns(limits.MARKDOWN_AT_ONCE, limits.MARKDOWN_WAITING)

    async def html(self, text: str) -> str:
        """The text as safe HTML, made in a thread unless it is remembered; TooMany when too many wait for that."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._html.get(key)
        if known is not None:
            self._html.move_to_end(key)
            return known
        async with self._turns.turn():
            made = await asyncio.to_thread(to_html, text)
        self._remember(key, made)
        return made

    def _remember(self, key: bytes, made: str) -> None:
        if key in self._html:
            return
        self._html[key] = made
        self._size += _counted(made)
        while self._size > limits.MARKDOWN_REMEMBERED_CHARACTERS:
            _, oldest = self._html.popitem(last=False)
            self._size -= _counted(oldest)


def _counted(made: str) -> int:
    """What remembering it costs: also what is rendered to nothing has a place in the table."""
    return len(made) + limits.MARKDOWN_ENTRY_CHARACTERS
