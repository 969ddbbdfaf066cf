"""Durable, then visible, then answered: what the journal promises, taken out."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.sim.ablations.ablation import Ablation
from windlass.journal import sqlite, view
from windlass.journal.journal import Journal
from windlass.journal.log import Log
from windlass.journal.records import Checkpoint, Trim
from windlass.journal.tail import Tail, TailEntry
from windlass.testing import sim_world


def publish_at_append(patch: pytest.MonkeyPatch) -> None:
    """Readers see facts before they are on disk."""
    append = Log.append

    def visible(log: Log, facts: Any) -> int:
        head = append(log, facts)
        log._publish(head)
        return head

    patch.setattr(Log, "append", visible)


def answer_before_durable(patch: pytest.MonkeyPatch) -> None:
    """Callers are answered before what they are told is on disk."""

    async def at_once(log: Log, seq: int) -> None:
        return None

    patch.setattr(Log, "durable", at_once)


def publish_outside_the_order(patch: pytest.MonkeyPatch) -> None:
    """Each fact goes to its readers in a callback of its own, and not in the step that publishes it (R21)."""
    append = Tail.append

    def later(tail: Tail, entry: TailEntry) -> None:
        asyncio.get_running_loop().call_soon(append, tail, entry)

    patch.setattr(Tail, "append", later)


def go_on_after_a_failed_commit(patch: pytest.MonkeyPatch) -> None:
    """A commit that the disk refused is taken for one that it did not."""
    committed = Journal._committed
    patch.setattr(Journal, "_committed", lambda journal, batch, error: committed(journal, batch, None))


def leave_those_who_wait_for_a_failed_disk(patch: pytest.MonkeyPatch) -> None:
    """When the disk refuses, whoever waits for it is told nothing."""
    patch.setattr(Log, "fail", lambda log, error: log.close())


def split_endings(patch: pytest.MonkeyPatch) -> None:
    """What was staged together is not committed together: a crash leaves half an ending."""
    stage = Journal.stage

    def one_by_one(journal: Journal, records: Any) -> None:
        for record in records:
            stage(journal, [record])

    patch.setattr(Journal, "stage", one_by_one)
    patch.setitem(sim_world.SMALL_LIMITS, "COMMIT_FACTS", 1)


def trim_the_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Trimming also takes the newest fact of a key: the view can no longer be rebuilt."""

    def everything(connection: Any, record: Trim) -> None:
        key = record.workspace, record.floor
        connection.execute("DELETE FROM facts WHERE workspace = ? AND seq <= ?", key)
        connection.execute("UPDATE workspaces SET floor = ?2 WHERE id = ?1 AND floor < ?2", key)

    patch.setattr(sqlite, "trim", everything)


def trim_one_too_many(patch: pytest.MonkeyPatch) -> None:
    """Trimming takes the first fact above the floor as well."""
    trim = sqlite.trim

    def greedy(connection: Any, record: Trim) -> None:
        trim(connection, msgspec.structs.replace(record, floor=record.floor + 1))
        connection.execute("UPDATE workspaces SET floor = ? WHERE id = ?", (record.floor, record.workspace))

    patch.setattr(sqlite, "trim", greedy)


def show_text_before_its_fact(patch: pytest.MonkeyPatch) -> None:
    """Text that was said after a fact joins the piece that was staged before it."""
    created = Log.__init__

    def init(log: Log, *arguments: Any) -> None:
        created(log, *arguments)
        log._open_deltas = _NeverCleared(log)

    patch.setattr(Log, "__init__", init)


class _NeverCleared(dict[Any, Any]):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def clear(self) -> None:
        pass

    def get(self, key: tuple[str, int], default: Any = None) -> Any:
        slot, live = super().get(key), self._log._staged_live.get(key[0])
        if slot is not None and live is not None:
            live.ensure_part(key[1], slot.live.part_type(key[1]), slot.id, slot.name)  # the text itself is not lost
        return slot


def checkpoint_what_has_ended(patch: pytest.MonkeyPatch) -> None:
    """Text of a message is kept after the fact that ended it, and nobody ever removes it (B45)."""

    def checkpoint(log: Log) -> None:
        log._checkpoint_handle = None
        for live in log.live.values():
            body = msgspec.json.encode(live.published())
            log._journal.stage([Checkpoint(log.workspace_id, live.message.id, live.message.session_id, body)])

    patch.setattr(Log, "_checkpoint", checkpoint)


def open_before_the_last_words_are_written(patch: pytest.MonkeyPatch) -> None:
    """A workspace is opened again while facts of its last opening are on their way: two logs number the same facts."""

    async def open_log(journal: Journal, workspace_id: str) -> Any:
        opening = await journal.read(view.opening, workspace_id)
        log = journal._logs[workspace_id] = Log(journal, opening)
        return log, opening

    patch.setattr(Journal, "open_log", open_log)


ABLATIONS = [
    Ablation(publish_at_append, ("I12",), last_found=4),
    Ablation(answer_before_durable, ("I1", "I12")),
    Ablation(publish_outside_the_order, ("I13",), last_found=11),
    Ablation(go_on_after_a_failed_commit, ("I12",), last_found=12),
    Ablation(leave_those_who_wait_for_a_failed_disk, ("I12", "I19"), last_found=12),
    Ablation(split_endings, ("I3", "I7"), last_found=22),
    Ablation(trim_the_snapshot, ("I15",), last_found=3),
    Ablation(trim_one_too_many, ("I12",), last_found=13),
    Ablation(show_text_before_its_fact, ("I16",), last_found=31),
    Ablation(checkpoint_what_has_ended, ("B45",)),
    Ablation(open_before_the_last_words_are_written, ("I12",), last_found=19),
]
