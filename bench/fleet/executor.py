"""The worker's end of the link's measurement: `windlass worker --executor bench.fleet.executor:Chatter`."""

import time

from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.run_events import Delta, MessageEnd, MessageStart

MESSAGE_ID = "msg_00000000000000000000000000000000"  # as long as a real one
WORD = "word "


class Chatter:
    """`flood N`: so many words as fast as they are taken. `trips N`: each waits until the owner has committed it.

    The transcript of `trips` is the milliseconds that each took.
    """

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        what, _, count = spec.prompt.partition(" ")
        events.emit(MessageStart(MESSAGE_ID, "assistant"))
        took: list[float] = []
        if what == "flood":
            _flood(events, int(count))
        else:
            took = await _trips(events, int(count))
        events.emit(MessageEnd(MESSAGE_ID, "end_turn"))
        return RunOutcome("completed", transcript=took)


def _flood(events: Events, count: int) -> None:
    for number in range(count):
        # Two parts in turn: words of one part that a slow parent has not read yet would be merged, and frames counted.
        events.emit(Delta(MESSAGE_ID, number % 2, "text", WORD))


async def _trips(events: Events, count: int) -> list[float]:
    took = []
    for _ in range(count):
        began = time.monotonic()
        await events.durable(Delta(MESSAGE_ID, 0, "text", WORD))
        took.append((time.monotonic() - began) * 1000)
    return took
