"""The runs and conversations of a simulated history, put together from the facts on disk, for the checks."""

from collections.abc import Iterator

import msgspec

from windlass.testing.history import Ask, History
from windlass.testing.ledger import Ledger, Stored
from windlass.wire.messages import Message, MessagePrivate
from windlass.wire.runs import TERMINAL_STATES, Run, RunPrivate

_run = msgspec.json.Decoder(Run).decode
_private = msgspec.json.Decoder(RunPrivate).decode
_message = msgspec.json.Decoder(Message).decode
_place = msgspec.json.Decoder(MessagePrivate).decode


class RunFact:
    """A `run` fact, decoded."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.run = _run(stored.row.body)

    @property
    def at(self) -> int:
        return self.stored.at


class RunRecord:
    """One run and all of its facts, in order."""

    def __init__(self, ledger: Ledger, created: Stored) -> None:
        assert created.row.private is not None
        self.ledger = ledger
        self.id = created.row.run
        self.session = created.row.session
        self.number = _private(created.row.private).number
        self.parent_run = _private(created.row.private).parent_run
        self.facts: list[Stored] = []
        self.states: list[RunFact] = []
        self.asks: list[Ask] = []  # prompts that were answered with this run, or may have made it

    def add(self, stored: Stored) -> None:
        self.facts.append(stored)
        if stored.row.kind == "run":
            self.states.append(RunFact(stored))

    @property
    def run(self) -> Run:
        return self.states[-1].run

    @property
    def prompt(self) -> str:
        """As it was accepted: a run that has started repeats only the beginning of a long one."""
        return self.states[0].run.prompt

    @property
    def created(self) -> Stored:
        return self.facts[0]

    @property
    def started(self) -> RunFact | None:
        return next((fact for fact in self.states if fact.run.state == "running"), None)

    @property
    def flagged(self) -> RunFact | None:
        """Where a cancel covered it."""
        return next((fact for fact in self.states if fact.run.cancel_requested), None)

    @property
    def terminals(self) -> list[RunFact]:
        return [fact for fact in self.states if fact.run.state in TERMINAL_STATES]

    @property
    def terminal(self) -> RunFact | None:
        return next(iter(self.terminals), None)

    @property
    def taken_by(self) -> str:
        """The run that took it, if it is a steered one that was taken."""
        started = self.started
        return "" if started is None else started.run.into

    @property
    def asked(self) -> int:
        """Nobody can have known of it before this."""
        return min((ask.asked for ask in self.asks), default=0)

    def __str__(self) -> str:
        return f"run {self.id} of {self.session} (#{self.number}, {self.run.state})"


class Records:
    """All runs of all workspaces. An id whose session was deleted may be used again: then it is another run."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._by_id: dict[tuple[str, str], list[RunRecord]] = {}
        self.stray: list[Stored] = []  # facts of a run that was never created
        for ledger in history.ledgers.values():
            for stored in ledger.facts:
                if stored.row.run:
                    self._file(ledger, stored)
        for ask in history.asks:
            if ask.kind == "prompt":
                self._credit(ask)

    def _file(self, ledger: Ledger, stored: Stored) -> None:
        key = ledger.id, stored.row.run
        records = self._by_id.setdefault(key, [])
        forgotten = bool(records) and ledger.deleted.get(records[-1].session, stored.at) < stored.at
        if stored.row.kind == "run" and stored.row.change == "created" and (not records or forgotten):
            records.append(RunRecord(ledger, stored))
        if records:
            records[-1].add(stored)
        else:
            self.stray.append(stored)

    def _credit(self, ask: Ask) -> None:
        arguments = ask.arguments
        for record in self.of_workspace(arguments["workspace"]):
            answered = ask.status == "answered" and ask.answer.run_id == record.id
            if record.prompt == arguments["prompt"] and (answered or ask.status != "answered"):
                record.asks.append(ask)

    def __iter__(self) -> Iterator[RunRecord]:
        for records in self._by_id.values():
            yield from records

    def of_workspace(self, workspace_id: str) -> list[RunRecord]:
        return [record for record in self if record.ledger.id == workspace_id]

    def of_session(self, workspace_id: str, session: str) -> list[RunRecord]:
        return [record for record in self.of_workspace(workspace_id) if record.session == session]

    def find(self, workspace_id: str, run_id: str, at: int) -> RunRecord | None:
        """The run that had this id at a place in history."""
        records = self._by_id.get((workspace_id, run_id), [])
        return next((record for record in reversed(records) if record.created.at <= at), None)


class MessageRecord:
    """A message as its last fact left it."""

    def __init__(self, stored: Stored) -> None:
        assert stored.row.private is not None
        self.message = _message(stored.row.body)
        self.run = stored.row.run
        place = _place(stored.row.private)
        self.place = place.number, place.index


def conversation(ledger: Ledger, session: str) -> list[MessageRecord]:
    """The messages of a session, in the order of the conversation."""
    newest: dict[str, Stored] = {}
    for stored in ledger.facts:
        if stored.row.kind == "message" and stored.row.session == session:
            newest[stored.row.key] = stored
    return sorted((MessageRecord(stored) for stored in newest.values()), key=lambda record: record.place)
