"""Events as bytes. A fact is encoded once; every reader is sent the same bytes."""

import functools
from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.journal.records import FactRow

_encode = msgspec.json.Encoder().encode
_TIMES = 512  # kept as text: those of a page of facts, in 80 KB


def fact_event(epoch: str, row: FactRow) -> bytes:
    """The stream's lines for a fact. JSON as we encode it has no raw newline, so it cannot break the framing (A41)."""
    head = f'id: {epoch}.{row.seq}\ndata: {{"type":"{row.kind}","payload":{{"type":"{row.change}","payload":'
    return b"".join((head.encode(), row.body, b'},"by":', row.by, b',"time":"', rfc3339(row.time), b'"}\n\n'))


def plain_event(kind: str, change: str, payload: Any) -> bytes:
    """The stream's lines for what is not a fact: without an id, so that nobody comes back to it."""
    return b'data: {"type":"%s","payload":{"type":"%s","payload":%s}}\n\n' % (
        kind.encode(),
        change.encode(),
        payload if isinstance(payload, bytes) else _encode(payload),
    )


@functools.lru_cache(maxsize=_TIMES)  # the facts of one commit share their time, and readers come for the same facts
def rfc3339(time: float) -> bytes:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
