"""Readers: what a stream promises, taken out."""

from typing import Any

import msgspec
import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.engine.subscription import Cursor, Subscription
from windlass.journal.encoding import fact_event
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.reader import Reader
from windlass.journal.records import Record, Trim


def resume_one_too_far(patch: pytest.MonkeyPatch) -> None:
    """A reader that comes back goes on one fact too late."""
    position = Subscription._position

    def skipping(subscription: Subscription, cursor: Any) -> tuple[int, str]:
        after, problem = position(subscription, cursor)
        behind = after < subscription._workspace.log.published
        return (after + 1 if behind else after), problem

    patch.setattr(Subscription, "_position", skipping)


def resume_in_any_log(patch: pytest.MonkeyPatch) -> None:
    """A cursor's epoch is not looked at: a place in a log that is no more is taken for one in this (B41)."""
    position = Subscription._position

    def anywhere(subscription: Subscription, cursor: Cursor | None) -> tuple[int, str]:
        own = None if cursor is None else msgspec.structs.replace(cursor, epoch=subscription._workspace.log.epoch)
        return position(subscription, own)

    patch.setattr(Subscription, "_position", anywhere)


def reset_at_the_floor(patch: pytest.MonkeyPatch) -> None:
    """A cursor at the floor is taken for one below it: a client that missed nothing is told to start again."""
    position = Subscription._position

    def strict(subscription: Subscription, cursor: Cursor | None) -> tuple[int, str]:
        log = subscription._workspace.log
        if cursor is not None and cursor.epoch == log.epoch and 0 < cursor.seq == log.floor:
            return log.published, "the log was trimmed beyond the cursor"
        return position(subscription, cursor)

    patch.setattr(Subscription, "_position", strict)


def jump_over_a_gap(patch: pytest.MonkeyPatch) -> None:
    """A reader that the log was trimmed under goes on behind the gap and says nothing of it."""

    async def page(log: Log, after: int) -> tuple[bytes, int]:
        rows = await log._journal.facts(log.workspace_id, after, log.published)
        return b"".join(fact_event(log.epoch, row) for row in rows), rows[-1].seq if rows else after

    patch.setattr(Log, "page", page)


def keep_the_floor_to_oneself(patch: pytest.MonkeyPatch) -> None:
    """A log that was trimmed while it was open tells its readers the old floor."""
    publish = Journal._publish

    def silent(journal: Journal, batch: list[Record]) -> None:
        publish(journal, [record for record in batch if not isinstance(record, Trim)])

    patch.setattr(Journal, "_publish", silent)


def stay_in_the_tail(patch: pytest.MonkeyPatch) -> None:
    """A reader that is too slow for the tail goes on with what is left of it."""
    following = Reader._next

    async def hurried(reader: Reader) -> Any:
        if reader._position is not None:
            reader._position = max(reader._position, reader._log.tail.first)
        return await following(reader)

    patch.setattr(Reader, "_next", hurried)


def join_without_what_is_being_written(patch: pytest.MonkeyPatch) -> None:
    """A reader that has caught up is not told the text so far, and then gets pieces that continue it."""

    def join(reader: Reader) -> bytes:
        reader._position = reader._log.tail.end
        return reader._from_tail()

    patch.setattr(Reader, "_join", join)


def listen_later_than_hello(patch: pytest.MonkeyPatch) -> None:
    """The greeting is taken in one step and the place in the log in another: what comes between is lost (R48)."""
    following = Subscription.next

    async def late(subscription: Subscription, seconds: float) -> bytes:
        if not subscription.__dict__.setdefault("listening", False):
            subscription.__dict__["listening"] = True
            subscription._reader.seq = subscription._workspace.log.published
        return await following(subscription, seconds)

    patch.setattr(Subscription, "next", late)


ABLATIONS = [
    Ablation(resume_one_too_far, ("I13",)),
    Ablation(resume_in_any_log, ("I13",), last_found=1),
    Ablation(reset_at_the_floor, ("I13",), last_found=35),
    Ablation(jump_over_a_gap, ("I13",), last_found=6),
    Ablation(keep_the_floor_to_oneself, ("B41",), last_found=6),
    Ablation(stay_in_the_tail, ("I13",)),
    Ablation(join_without_what_is_being_written, ("I16",), last_found=1),
    Ablation(listen_later_than_hello, ("I13",)),
]
