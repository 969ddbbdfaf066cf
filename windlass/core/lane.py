"""A session's runs, in the order they were accepted: who is next, who is covered by a cancel, how each ends.

A run is *covered* when its flag `cancel_requested` is set; `cancel` sets it on everything accepted so far, in one
synchronous step. Those flags are the whole cancel-race design (R1-R11). A cancel cannot be lost: a run is in its lane
from the moment it is accepted until it has ended, so the step finds it wherever it is on its way, and whoever starts or
ends a run looks at the flag in the same step. It cannot leak to a later prompt: nothing of a cancel is kept but these
flags, and a run that is accepted later begins without one.

A cancel marks; it does not end. The active run is stopped by its owner and ended; covered runs behind it end in lane
order after it.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from windlass import limits
from windlass.errors import Conflict, NotFound, TooMany
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.runs import (
    AgentEvent,
    Attachment,
    Disposition,
    OnBusy,
    Outcome,
    Purpose,
    Run,
    RunComplete,
    RunPrivate,
    Usage,
)


class Request(msgspec.Struct, frozen=True):
    """A prompt that was validated and is about to be accepted."""

    run_id: str
    prompt: str
    on_busy: OnBusy = "enqueue"
    order: int = 0
    digest: str = ""
    attachments: list[Attachment] = []
    reasoning_effort: str = ""
    model: str = ""
    parent_run: str = ""
    purpose: Purpose = "prompt"
    term_width: int = 0
    max_cost: float = 0.0
    allow: list[str] = []


class Entry:
    """A run that is not terminal, in its lane. `taken` is set on a steered run when another run took its message."""

    __slots__ = ("private", "run", "taken")

    def __init__(self, run: Run, private: RunPrivate) -> None:
        self.run = run
        self.private = private
        self.taken = False

    @property
    def by(self) -> By:
        return self.private.by

    @property
    def number(self) -> int:
        return self.private.number

    @property
    def is_pending_steer(self) -> bool:
        return bool(self.run.into) and not self.taken

    def __repr__(self) -> str:
        return f"Entry({self.run.id}, #{self.number}, {self.run.state}, into={self.run.into!r}, taken={self.taken})"


class Acceptance(msgspec.Struct, frozen=True):
    """What the caller is told, and the facts that make it true. `stopped` are the runs an `interrupt` covered."""

    run: Run
    position: int
    facts: list[Fact]
    stopped: list[str] = []


class Cover(msgspec.Struct, frozen=True):
    """The runs a cancel covers that are not terminal, and the facts of those it newly marked."""

    run_ids: list[str]
    facts: list[Fact]


class Ending(msgspec.Struct, frozen=True):
    """How a run ended, for `finish`."""

    outcome: Outcome
    message_id: str = ""
    text: str = ""
    error: str = ""
    transcript: Any = None


class Lane:
    """One session's runs that are not terminal."""

    def __init__(self, session_id: str, next_number: int = 1) -> None:
        self.session_id = session_id
        self.active: Entry | None = None
        self._entries: dict[str, Entry] = {}
        self._next_number = next_number

    # -- looking ------------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._entries)

    @property
    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    def get(self, run_id: str) -> Entry | None:
        return self._entries.get(run_id)

    def covered(self, entry: Entry) -> bool:
        return entry.run.cancel_requested

    @property
    def queued(self) -> list[Entry]:
        """What waits and will run: neither active, nor taken by the active run, nor covered."""
        return [e for e in self._entries.values() if e is not self.active and not e.taken and not self.covered(e)]

    def position(self, run_id: str) -> int:
        """How many runs are ahead of this one; 0 for one that runs or is over."""
        return next((index for index, id in enumerate(self._entries) if id == run_id), 0)

    def pending_steers(self, run_id: str) -> list[Entry]:
        """Steered prompts that `run_id` may still take, oldest first."""
        steers = (e for e in self._entries.values() if e.is_pending_steer and e.run.into == run_id)
        return [e for e in steers if not self.covered(e)]

    # -- deciding -----------------------------------------------------------------------------------------------------

    def accept(self, request: Request, by: By, now: str) -> Acceptance:
        """Take a prompt in. It is in the lane from here on, so any later cancel covers it."""
        facts: list[Fact] = []
        stopped: list[str] = []
        if self.is_busy and request.on_busy == "reject":
            raise Conflict("This session is busy. Wait for its run to end, or send the prompt with on_busy enqueue.")
        if len(self._entries) >= limits.QUEUE_PER_SESSION:
            raise TooMany(f"This session already has {len(self._entries)} prompts waiting. Clear the queue or wait.")
        if request.on_busy == "interrupt":
            cover = self.cancel(by)
            facts += cover.facts
            stopped = cover.run_ids
        disposition, into = self._disposition(request.on_busy)
        run = Run(
            id=request.run_id,
            session_id=self.session_id,
            state="accepted" if disposition == "started" else "queued",
            cancel_requested=False,
            prompt=request.prompt,
            disposition=disposition,
            message_ids=(),
            usage=Usage(),
            cost=0.0,
            created_at=now,
            into=into,
        )
        private = RunPrivate(
            number=self._next_number,
            order=request.order,
            by=by,
            digest=request.digest,
            attachments=request.attachments,
            reasoning_effort=request.reasoning_effort,
            model=request.model,
            parent_run=request.parent_run,
            purpose=request.purpose,
            term_width=request.term_width,
            max_cost=request.max_cost,
            allow=request.allow,
        )
        self._next_number += 1
        entry = Entry(run, private)
        position = len(self._entries)
        self._entries[run.id] = entry
        facts.append(self._run_fact(entry, by, "created"))
        return Acceptance(run, position, facts, stopped)

    def _disposition(self, on_busy: OnBusy) -> tuple[Disposition, str]:
        if on_busy == "steer" and self.active is not None and not self.covered(self.active):
            return "steered", self.active.run.id
        return ("queued", "") if self._entries else ("started", "")

    def cancel(self, by: By) -> Cover:
        """Cover everything accepted so far, and nothing that comes later. On an idle lane: nothing at all (B06)."""
        return self._flag(self._entries.values(), by)

    def cancel_run(self, run_id: str, by: By) -> Cover:
        """Cover exactly one run (I6)."""
        return self._flag([self._known(run_id)], by)

    def remove(self, run_id: str, by: By) -> Cover:
        """Cover a run that has not started; one that is running is refused."""
        entry = self._known(run_id)
        if entry is self.active or entry.taken:
            raise Conflict("This run is already running. Cancel it instead of removing it from the queue.")
        return self._flag([entry], by)

    def clear(self, by: By) -> Cover:
        """Cover what is queued; the active run goes on."""
        return self._flag([e for e in self._entries.values() if e is not self.active and not e.taken], by)

    def _flag(self, entries: Iterable[Entry], by: By) -> Cover:
        facts: list[Fact] = []
        ids: list[str] = []
        for entry in list(entries):
            ids.append(entry.run.id)
            if not entry.run.cancel_requested:
                entry.run = msgspec.structs.replace(entry.run, cancel_requested=True)
                facts.append(self._run_fact(entry, by))
        return Cover(ids, facts)

    def head(self) -> Entry | None:
        """The run that is next to start or, if it is covered, to be ended unstarted; None while one is active."""
        if self.active is not None:
            return None
        return next(iter(self._entries.values()), None)

    def start(self, entry: Entry, now: str) -> list[Fact]:
        """The head of the lane becomes the active run (I2, I4). A covered one is never started."""
        assert entry is self.head() and not self.covered(entry)
        self.active = entry
        entry.run = msgspec.structs.replace(entry.run, state="running", started_at=now)
        return [self._run_fact(entry, entry.by)]

    def steer_taken(self, run_id: str, now: str) -> list[Fact] | None:
        """The active run took this steered prompt; None if it may not (cancelled, or its run is no longer active)."""
        entry, active = self._entries.get(run_id), self.active
        if entry is None or active is None or self.covered(active) or entry not in self.pending_steers(active.run.id):
            return None
        entry.taken = True
        entry.run = msgspec.structs.replace(entry.run, state="running", started_at=now)
        return [self._run_fact(entry, entry.by)]

    def set_waiting(self, run_id: str, waiting: bool, by: By) -> list[Fact]:
        """A run that waits for a person says so in its state (B15)."""
        entry = self._entries.get(run_id)
        state: Literal["waiting", "running"] = "waiting" if waiting else "running"
        if entry is None or entry.run.state == state or entry.run.state not in ("waiting", "running"):
            return []
        entry.run = msgspec.structs.replace(entry.run, state=state)
        return [self._run_fact(entry, by)]

    def note(self, entry: Entry, *, message_id: str = "", usage: Usage | None = None, cost: float = 0.0) -> None:
        """Remember what the run gained; it is part of the run's next fact."""
        run = entry.run
        if message_id:
            run = msgspec.structs.replace(run, message_ids=(*run.message_ids, message_id))
        if usage is not None:
            total = Usage(
                prompt_tokens=run.usage.prompt_tokens + usage.prompt_tokens,
                completion_tokens=run.usage.completion_tokens + usage.completion_tokens,
                cache_read_tokens=run.usage.cache_read_tokens + usage.cache_read_tokens,
                cache_write_tokens=run.usage.cache_write_tokens + usage.cache_write_tokens,
            )
            run = msgspec.structs.replace(run, usage=total, cost=run.cost + cost)
        entry.run = run

    def progress(self, entry: Entry) -> list[Fact]:
        """What the run has gained so far, as a fact."""
        return [self._run_fact(entry, entry.by)]

    def verdict(self, entry: Entry, outcome: Outcome) -> Outcome:
        """How the run really ends: a cancel that covers it wins over whatever the executor came back with (R8, R22)."""
        return "canceled" if self.covered(entry) else outcome

    def finish(self, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        """End the run, and with it the steered runs it took; those it did not take become ordinary queued runs."""
        assert entry is self.active or (self.active is None and entry is self.head())
        assert ending.outcome == self.verdict(entry, ending.outcome)
        facts = self._terminal(entry, ending, now)
        for other in list(self._entries.values()):
            if other.run.into != entry.run.id:
                continue
            if other.taken:
                facts += self._terminal(other, self._shared(other, ending), now)
            else:
                other.run = msgspec.structs.replace(other.run, into="", disposition="queued")
                facts.append(self._run_fact(other, other.by))
        self.active = None
        return facts

    def _shared(self, steered: Entry, ending: Ending) -> Ending:
        if ending.outcome != "canceled" and self.covered(steered):
            return Ending("canceled", ending.message_id)
        return msgspec.structs.replace(ending, transcript=None)  # it is kept once, with the run it tells of

    def _terminal(self, entry: Entry, ending: Ending, now: str) -> list[Fact]:
        failed = ending.outcome in ("failed", "interrupted")
        error = ending.error if failed else ""
        del self._entries[entry.run.id]
        entry.run = msgspec.structs.replace(entry.run, state=ending.outcome, ended_at=now, error=error)
        if ending.transcript is not None:
            entry.private = msgspec.structs.replace(entry.private, transcript=ending.transcript)
        facts = [self._run_fact(entry, entry.by)]
        if ending.outcome == "failed":
            event = AgentEvent("error", self.session_id, entry.run.id, error)
            facts.append(Fact("agent_event", "created", event, entry.by, self.session_id, entry.run.id))
        complete = RunComplete(
            session_id=self.session_id,
            run_id=entry.run.id,
            message_id=ending.message_id,
            text=ending.text,
            error=error,
            cancelled=ending.outcome == "canceled",
        )
        facts.append(Fact("run_complete", "created", complete, entry.by, self.session_id, entry.run.id))
        return facts

    # -- restoring ----------------------------------------------------------------------------------------------------

    def restore(self, entry: Entry) -> None:
        """Put a run back as a restart found it, in accept order. A running one is active until recovery ends it."""
        self._entries[entry.run.id] = entry
        self._next_number = max(self._next_number, entry.number + 1)
        if entry.run.state in ("running", "waiting"):
            if entry.run.into:
                entry.taken = True
            else:
                self.active = entry

    def _known(self, run_id: str) -> Entry:
        entry = self._entries.get(run_id)
        if entry is None:
            raise NotFound("There is no such run in this session.")
        return entry

    def _run_fact(self, entry: Entry, by: By, change: Literal["created", "updated"] = "updated") -> Fact:
        run, private = entry.run, entry.private
        if run.state not in ("accepted", "queued"):
            # From its start on they are in its message: here they would be on disk once more for each change (B45).
            # So would its rules, and nobody reads them there: a restart does not go on with a run that had started.
            if private.attachments or private.allow:
                private = msgspec.structs.replace(private, attachments=[], allow=[])
            run = msgspec.structs.replace(run, prompt=_shortened(run.prompt))
        return Fact("run", change, run, by, self.session_id, run.id, key=run.id, private=private)


def _shortened(prompt: str) -> str:
    limit = limits.RUN_PROMPT_CHARACTERS
    return prompt if len(prompt) <= limit else prompt[: limit - 1] + "…"
