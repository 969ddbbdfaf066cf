"""What a durable message between agents costs: deliveries, and claims with their acks, beside bare files."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench.child import Child
from bench.plan import Plan
from bench.rows import Row, percentile

_WRITERS = 8
_ROUNDS = 5  # ours and bare in turn: the disk is not the same from one second to the next


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with AsyncExitStack() as stack:
        hands = [await stack.enter_async_context(Child("bench.mailbox_hand")) for _ in range(_WRITERS)]
        rows = []
        for writers in (1, _WRITERS):
            ours, bare = await _in_turn(hands[:writers], "deliver", plan.mails, scratch)
            name = f"durable mailbox deliveries, {writers} writer{'s' if writers > 1 else ''}"
            note = "bare: write, fsync, rename, fsync of the directory"
            rows.append(Row(name=name, value=ours, unit="/s", bare=bare, note=note))
        ours, bare = await _in_turn(hands[:1], "read", plan.mails, scratch)
        note = "4 at a time; bare: rename, fsync, read, unlink, fsync"
        rows.append(Row(name="mailbox claims with their acks", value=ours, unit="/s", bare=bare, note=note))
    return rows


async def _in_turn(hands: list[Child], what: str, mails: int, scratch: Path) -> tuple[float, float]:
    """Messages a second, ours and bare; the median of the rounds."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(_ROUNDS):
        for bare in (True, False):
            directory = scratch / f"{what}-{len(hands)}-{number}-{bare}"
            if what == "read":
                await _ask(hands, "deliver", bare, directory, mails)
            took = await _ask(hands, what, bare, directory, mails)
            rates[bare].append(mails / took)
    return percentile(sorted(rates[False]), 0.5), percentile(sorted(rates[True]), 0.5)


async def _ask(hands: list[Child], what: str, bare: bool, directory: Path, mails: int) -> float:
    """All hands at once; seconds until the last one is done."""
    count = mails // len(hands)
    began = time.monotonic()
    await asyncio.gather(
        *(
            hand.ask(what, bare=bare, directory=str(directory), name=f"hand-{number}", count=count)
            for number, hand in enumerate(hands)
        )
    )
    return time.monotonic() - began
