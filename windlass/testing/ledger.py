"""The disk, as a simulation remembers it: every fact that was ever committed, also those trimmed or emptied since."""

from typing import Any, NamedTuple

import msgspec

from windlass.journal.records import FactRow, NewWorkspace
from windlass.wire.runs import TERMINAL_STATES

_Body = dict[str, Any]
_decode = msgspec.json.Decoder(_Body).decode


class Stored:
    """A fact on disk: the row, the bytes every reader must get, and when it was committed."""

    __slots__ = ("at", "body", "event", "life", "row", "time")

    def __init__(self, row: FactRow, event: bytes, at: int, time: float, life: int) -> None:
        self.row = row
        self.event = event
        self.at = at
        self.time = time
        self.life = life
        self.body = _decode(row.body)

    def __str__(self) -> str:
        row = self.row
        return f"disk     {row.workspace} #{row.seq} {row.kind} {row.change} {_told(self)}"


def _told(stored: Stored) -> str:
    """The part of a body that says what it is about."""
    body, run = stored.body, stored.row.run
    wanted = ("id", "run_id", "state", "role", "outcome", "into", "is_busy", "cancelled", "error")
    told = " ".join(f"{name}={body[name]!r}" for name in wanted if body.get(name))
    parts = "".join(f" {part['type']}" for part in body.get("parts", ()))
    flagged = " cancel_requested" if body.get("cancel_requested") else ""
    return f"{told}{parts}{flagged}" + (f" run={run}" if run else "")


class Floor(NamedTuple):
    """A trim: from here on the log begins after `seq`."""

    at: int
    time: float
    seq: int


class Ledger:
    """One workspace's log as it was committed, fact by fact; nothing is ever taken out of this copy."""

    def __init__(self, workspace: NewWorkspace) -> None:
        self.id = workspace.id
        self.path = workspace.path
        self.epoch = workspace.epoch
        self.facts: list[Stored] = []
        self.floors: list[Floor] = []
        self.deleted: dict[str, int] = {}  # session -> at
        self.open_runs: dict[str, str] = {}  # run -> state, of those that are not over

    def floor(self, at: int) -> int:
        return max((floor.seq for floor in self.floors if floor.at <= at), default=0)

    def floor_since(self, time: float) -> int:
        """The floor that had been on disk at this time already."""
        return max((floor.seq for floor in self.floors if floor.time <= time), default=0)

    def add(self, stored: Stored) -> None:
        self.facts.append(stored)
        row = stored.row
        if row.kind == "session" and row.change == "deleted":
            self.deleted[row.session] = stored.at
        if row.kind == "run":
            self.open_runs[row.run] = stored.body["state"]
            if stored.body["state"] in TERMINAL_STATES:
                del self.open_runs[row.run]
