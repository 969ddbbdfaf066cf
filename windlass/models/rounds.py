"""Rounds: what arrives on all streams of a provider within a few milliseconds is dealt with in one go, and fairly.

Hundreds of models stream at once, a word here and a word there. Dealt with one by one, each word would find the
processor cold; together they cost half as much. And when more arrives than this machine can carry, a round ends after a
few milliseconds, so that a cancel, a health check and everyone else get their turn in between: the streams queue up
behind each other, and through their sockets slow the provider down.
"""

import asyncio
from collections import deque
from typing import Protocol

from windlass import limits


class Receiver(Protocol):
    def open(self, received: bytes) -> None:
        """Deal with bytes that came; b"" for the end. Never raises: it would end the round of everyone."""


class Rounds:
    """Receivers take turns here, in the order in which their bytes came."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[Receiver, bytes]] = deque()
        self._next: asyncio.Handle | None = None
        self._not_before = 0.0
        self._is_behind = False

    def add(self, receiver: Receiver, received: bytes) -> None:
        self._waiting.append((receiver, received))
        if self._next is None:
            # Alone, a word is passed on at once; in a flood, what came in ten milliseconds goes together.
            is_due = self._loop.time() >= self._not_before
            self._next = self._loop.call_soon(self._go) if is_due else self._loop.call_at(self._not_before, self._go)

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _go(self) -> None:
        time = self._loop.time
        work = limits.MODEL_ROUND_MORE_SECONDS if self._is_behind else limits.MODEL_ROUND_WORK_SECONDS
        until = time() + work
        arrivals = len(self._waiting)
        try:
            while self._waiting:
                receiver, received = self._waiting.popleft()
                receiver.open(received)
                if time() >= until:
                    break
        finally:  # also when a receiver breaks its word: no stream would ever get a turn again
            pause = min(limits.MODEL_ROUND_SECONDS, arrivals * limits.MODEL_ROUND_SECONDS_PER_ARRIVAL)
            self._not_before = time() + pause
            self._is_behind = bool(self._waiting)
            # Soon and not at once: in between the loop looks at every socket, a cancel among them.
            self._next = self._loop.call_soon(self._go) if self._is_behind else None
