"""Rounds: at once when alone, together in a flood, and never so long that nobody else gets a turn."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from windlass import limits
from windlass.models.rounds import Rounds
from windlass.testing.server_process import until


class Receiver:
    """Remembers what it was given, and may take its time with it."""

    def __init__(self, name: str, opened: list[tuple[str, bytes]], seconds: float = 0.0) -> None:
        self.name = name
        self._opened = opened
        self._seconds = seconds

    def open(self, received: bytes) -> None:
        self._opened.append((self.name, received))
        until = time.perf_counter() + self._seconds
        while time.perf_counter() < until:
            pass


@pytest.fixture
async def rounds() -> AsyncIterator[Rounds]:
    rounds = Rounds()
    yield rounds
    rounds.close()


async def test_what_comes_alone_is_passed_on_at_once(rounds: Rounds) -> None:
    """Otherwise the first word of every answer would wait for words that nobody sends."""
    opened: list[tuple[str, bytes]] = []
    rounds.add(Receiver("a", opened), b"one")
    await asyncio.sleep(0)
    assert opened == [("a", b"one")]


async def test_in_a_flood_what_came_since_the_last_round_goes_together_and_in_order(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each word of hundreds of streams would cost a wake-up of its own, or words would change places."""
    monkeypatch.setattr(limits, "MODEL_ROUND_SECONDS", 0.05)
    opened: list[tuple[str, bytes]] = []
    receivers = [Receiver(name, opened) for name in "abcdefghijklmnopqrstuvwxyz"]
    for receiver in receivers:
        rounds.add(receiver, b"1")
    await asyncio.sleep(0)
    first = len(opened)
    rounds.add(receivers[0], b"2")
    rounds.add(receivers[0], b"3")
    await asyncio.sleep(0)
    assert (first, len(opened)) == (26, 26)  # the second round is not due yet
    await until(lambda: len(opened) > 26, "the second round")
    assert opened[26:] == [("a", b"2"), ("a", b"3")]


async def test_when_there_is_too_much_others_get_a_turn_between_two_rounds(rounds: Rounds) -> None:
    """Otherwise a cancel would wait until everything that models sent meanwhile is dealt with."""
    opened: list[tuple[str, bytes]] = []
    for _ in range(10):
        rounds.add(Receiver("slow", opened, limits.MODEL_ROUND_WORK_SECONDS), b"x")
    turns = []
    while len(opened) < 10:
        await asyncio.sleep(0)  # as any other callback of the loop
        turns.append(len(opened))
    assert len(turns) >= 10


async def test_nothing_is_passed_on_after_the_end(rounds: Rounds) -> None:
    """Otherwise words would reach a run whose model was closed under it."""
    opened: list[tuple[str, bytes]] = []
    rounds.add(Receiver("a", opened), b"late")
    rounds.close()
    await asyncio.sleep(0)
    assert opened == []
