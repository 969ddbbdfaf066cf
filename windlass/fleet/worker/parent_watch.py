"""A worker ends when its parent does: it holds one end of a pipe whose other end dies with the parent (B59)."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator

from windlass.errors import Invalid

_READ_BYTES = 64 * 1024  # at a time; nothing is expected, and what comes is thrown away


@contextlib.contextmanager
def watch_parent(descriptor: int | None, gone: Callable[[], None]) -> Iterator[None]:
    """Call `gone` once when the descriptor comes to its end. None: there is no parent to watch."""
    if descriptor is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def look() -> None:
        try:
            ended = not os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            ended = True  # a socket whose other end was reset
        if ended:
            loop.remove_reader(descriptor)
            gone()

    try:
        os.set_inheritable(descriptor, False)  # what a run starts has no business with it
        loop.add_reader(descriptor, look)
    except OSError as error:
        raise Invalid(f"The descriptor {descriptor} cannot be watched for the parent's end: {error}.") from None
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
