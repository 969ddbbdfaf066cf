"""Places and their line: nobody overtakes, and a place is never lost, whoever leaves when."""

import asyncio

import pytest

from windlass.fleet.pool.slots import LineTooLong, Slots


async def in_line(slots: Slots, count: int) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.create_task(slots.take()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_who_comes_first_is_served_first() -> None:
    """A run that waited long could wait for ever."""
    slots = Slots(1, 10)
    await slots.take()
    first, second = await in_line(slots, 2)
    slots.give()
    newcomer = asyncio.create_task(slots.take())
    await asyncio.wait({first})
    assert (first.done(), second.done(), newcomer.done()) == (True, False, False)
    for task in (second, newcomer):
        slots.give()
        await task
    slots.give()
    assert (slots.taken, slots.waiting) == (0, 0)


async def test_a_line_is_bounded() -> None:
    """Runs would pile up that nobody can serve."""
    slots = Slots(1, 1)
    await slots.take()
    [waiting] = await in_line(slots, 1)
    with pytest.raises(LineTooLong):
        await slots.take()
    slots.give()
    await waiting


async def test_who_leaves_the_line_costs_no_place() -> None:
    """Each cancelled run would make the pool smaller, until nothing runs any more."""
    slots = Slots(1, 10)
    await slots.take()
    first, second = await in_line(slots, 2)
    first.cancel()
    await asyncio.wait({first})
    slots.give()
    await second
    slots.give()
    assert slots.taken == 0


async def test_who_is_called_in_the_moment_of_leaving_hands_the_place_on() -> None:
    """The place would be given to someone who is not there any more."""
    slots = Slots(1, 10)
    await slots.take()
    first, second = await in_line(slots, 2)
    slots.give()
    first.cancel()
    await asyncio.wait({first, second})
    assert (first.cancelled(), second.done()) == (True, True)
    slots.give()
    assert slots.taken == 0


async def test_closing_sends_everyone_away() -> None:
    """A server that leaves would wait for runs that wait for a worker."""

    class Closed(Exception):
        pass

    slots = Slots(1, 10)
    await slots.take()
    tasks = await in_line(slots, 2)
    slots.close(Closed)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Closed, Closed]
    assert slots.taken == 1
