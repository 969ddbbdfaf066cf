"""What waits to be sent to one peer: two lanes, bounded. No I/O.

Control frames (approvals, errors) overtake events that wait; a run's terminal follows all of its events. Text for a
peer that does not keep up is merged; nothing is ever dropped.
"""

from collections import deque
from collections.abc import Callable, Hashable

from windlass import limits


class Overflow(Exception):
    """The peer does not read; more than a bound waits for it."""


class Waiting:
    """A frame that waits. It is encoded when it is written: until then its text may grow.

    `text_of` names the text it is a piece of, None if it is none. What `continues` that text may be merged into it.
    """

    __slots__ = ("continues", "encode", "pieces", "size", "text_of", "written")

    def __init__(
        self,
        encode: Callable[["Waiting"], bytes],
        size: int,
        *,
        text_of: Hashable | None = None,
        continues: bool = True,
        pieces: list[str] | None = None,
        written: Callable[[], None] | None = None,
    ) -> None:
        self.encode = encode
        self.size = size
        self.text_of = text_of
        self.continues = continues
        self.pieces = pieces or []
        self.written = written

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Outbox:
    def __init__(self) -> None:
        self._controls: deque[bytes] = deque()
        self._events: deque[Waiting] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._controls or self._events)

    def put_control(self, frame: bytes, *, keeps_up: bool) -> None:
        """Send it before all events. To a peer that keeps up the next write brings both: then they stay in order."""
        if keeps_up and self._bytes < limits.WORKER_WRITE_BYTES:
            self.put_event(Waiting(lambda _: frame, len(frame)), keeps_up=True)
            return
        self._controls.append(frame)
        self._count(len(frame))
        if len(self._controls) > limits.WORKER_OUTBOX_CONTROLS:
            raise Overflow

    def put_event(self, event: Waiting, *, keeps_up: bool) -> None:
        """Append it, or merge it into the last one if the peer does not keep up and is far behind."""
        last = self._events[-1] if self._events else None
        if not keeps_up and self._is_long and last is not None and _is_continued(last, event):
            last.pieces += event.pieces
            last.size += event.size
            self._count(event.size - limits.WORKER_FRAME_OVERHEAD_BYTES)
            return
        self._events.append(event)
        self._count(event.size)
        if len(self._events) > limits.WORKER_OUTBOX_FRAMES:
            raise Overflow

    def take(self, max_bytes: int) -> tuple[list[bytes], list[Callable[[], None]]]:
        """The next frames to write, at least one if any waits, and whom to tell once they are written."""
        frames: list[bytes] = []
        told: list[Callable[[], None]] = []
        size = 0
        while self and size < max_bytes:
            if self._controls:
                frame = self._controls.popleft()
                self._bytes -= len(frame) + limits.WORKER_FRAME_OVERHEAD_BYTES
            else:
                event = self._events.popleft()
                self._bytes -= event.size + limits.WORKER_FRAME_OVERHEAD_BYTES
                frame = event.encode(event)
                if event.written is not None:
                    told.append(event.written)
            frames.append(frame)
            size += len(frame)
        return frames, told

    @property
    def fills_a_write(self) -> bool:
        return self._bytes >= limits.WORKER_WRITE_BYTES

    def discard(self) -> list[Callable[[], None]]:
        """The peer is gone: nothing is sent any more. Returns whom to tell."""
        told = [event.written for event in self._events if event.written is not None]
        self._controls.clear()
        self._events.clear()
        self._bytes = 0
        return told

    @property
    def _is_long(self) -> bool:
        return len(self._events) > limits.WORKER_MERGE_EVENTS or self._bytes > limits.WORKER_MERGE_BYTES

    def _count(self, size: int) -> None:
        self._bytes += size + limits.WORKER_FRAME_OVERHEAD_BYTES
        if self._bytes > limits.WORKER_OUTBOX_BYTES:
            raise Overflow


def _is_continued(last: Waiting, event: Waiting) -> bool:
    is_same_text = event.text_of is not None and event.text_of == last.text_of and event.continues
    return is_same_text and last.size + event.size <= limits.WORKER_MERGE_BYTES
