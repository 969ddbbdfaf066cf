"""Turns: so many at work, so many behind them, and a word to everyone else."""

import asyncio

import pytest

from windlass.errors import TooMany
from windlass.server.turns import Turns


async def held(turns: Turns, order: list[int], number: int, go: asyncio.Event) -> None:
    async with turns.turn():
        order.append(number)
        await go.wait()


async def test_who_comes_when_all_places_are_taken_is_told_to_come_again() -> None:
    """Whoever asks faster than is answered, and leaves, would fill the memory with what nobody waits for (A38)."""
    turns, order, go = Turns(at_once=1, waiting=1), list[int](), asyncio.Event()
    tasks = [asyncio.create_task(held(turns, order, number, go)) for number in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooMany):
        async with turns.turn():
            pass
    go.set()
    await asyncio.gather(*tasks)
    assert order == [0, 1]


async def test_a_place_is_free_again_after_a_failure_and_after_a_cancel() -> None:
    """After some mishaps nobody would be served until the server is restarted."""
    turns, go = Turns(at_once=1, waiting=1), asyncio.Event()
    first = asyncio.create_task(held(turns, [], 0, go))
    await asyncio.sleep(0)
    second = asyncio.create_task(held(turns, [], 1, go))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    with pytest.raises(ValueError):
        async with turns.turn():
            raise ValueError
    async with turns.turn():
        pass
