"""Notices a model that goes in circles: the same calls with the same results, again and again."""

import hashlib
from collections import deque
from collections.abc import Sequence

import msgspec

from windlass import limits
from windlass.agent.giving_up import GaveUp
from windlass.wire.messages import ToolCallData, ToolResultData


class Circles:
    """Remembers the last steps of one run. The same call with another result is progress; and as long as something goes
    on elsewhere, looking at it again is waiting, whatever is done in between (a look at the clock, a little sleep)."""

    def __init__(self) -> None:
        longest = max(limits.IDENTICAL_STEPS, limits.CYCLE_STEPS * limits.CYCLE_REPETITIONS)
        self._steps: deque[bytes] = deque(maxlen=longest)

    def check(self, calls: Sequence[ToolCallData], results: Sequence[ToolResultData], *, is_waiting: bool) -> None:
        """Take note of a step. Raises GaveUp when it closes a circle once too often.

        `is_waiting`: it looked at something that is still at work. Steps, time and cost bound that as they do all else.
        """
        if is_waiting:
            self._steps.clear()
            return
        self._steps.append(_digest(calls, results))
        for length in range(1, limits.CYCLE_STEPS + 1):
            rounds = limits.IDENTICAL_STEPS if length == 1 else limits.CYCLE_REPETITIONS
            if self._repeats(length, rounds):
                raise GaveUp(_reason(length, rounds, calls))

    def _repeats(self, length: int, rounds: int) -> bool:
        steps = list(self._steps)[-length * rounds :]
        return len(steps) == length * rounds and steps == steps[:length] * rounds


def _digest(calls: Sequence[ToolCallData], results: Sequence[ToolResultData]) -> bytes:
    # A digest and not the texts themselves: a dozen steps may hold megabytes.
    step = [(call.name, call.input, result.content) for call, result in zip(calls, results, strict=True)]
    return hashlib.sha256(msgspec.json.encode(step)).digest()


def _reason(length: int, rounds: int, calls: Sequence[ToolCallData]) -> str:
    if length == 1:
        names = ", ".join(sorted({call.name for call in calls}))
        what = f"the same tool calls ({names}) with the same results {rounds} times in a row"
    else:
        what = f"the same {length} steps with the same results in turn, {rounds} times over"
    return f"The run was stopped: the model made {what}. Tell it what to do differently."
