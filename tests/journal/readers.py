"""Readers of a test: what they wait with is closed when the test is over."""

from windlass.journal.log import Log
from windlass.journal.reader import Reader

_open: list[Reader] = []


def open_reader(log: Log, after: int, deltas: bool) -> Reader:
    reader = Reader(log, after, deltas)
    _open.append(reader)
    return reader


def close_readers() -> None:
    while _open:
        _open.pop().close()
