"""What happened in a simulation: what was asked and answered, what streams carried, what executors did, and the disk.

Everything has a place in one order (`at`), so that the checker can say "before" and "after". A seed that failed prints
the end of it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from windlass.journal.encoding import fact_event
from windlass.journal.records import FactRow, NewWorkspace, Record, Trim
from windlass.testing.ledger import Floor, Ledger, Stored

AskStatus = Literal["pending", "answered", "refused", "given up", "lost"]
StepKind = Literal["model", "ask", "tool", "agent", "question", "end"]


class Violation(NamedTuple):
    """Something that must never be: which invariant, and what was seen."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


class Ask:
    """One request of a client. `refusal` is the name and the text of the error it was refused with."""

    def __init__(self, number: int, client_id: str, kind: str, arguments: dict[str, Any]) -> None:
        self.number = number
        self.client_id = client_id
        self.kind = kind
        self.arguments = arguments
        self.life = 0
        self.asked = 0
        self.asked_time = 0.0
        self.status: AskStatus = "pending"
        self.answer: Any = None
        self.refusal = ""
        self.answered = 0

    def __str__(self) -> str:
        told = " ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"ask {self.number} {self.client_id} {self.kind} {told}"


class Answered(NamedTuple):
    """A line of the history: what became of an ask."""

    ask: Ask
    status: AskStatus

    def __str__(self) -> str:
        ask = self.ask
        what = ask.refusal if self.status == "refused" else repr(ask.answer)[:120]
        return f"  -> {ask.number} {ask.client_id} {ask.kind} {self.status} {what}"


class Step(NamedTuple):
    """Something an executor did, and whether it had been told to stop."""

    at: int
    session: str
    run_id: str
    kind: StepKind
    detail: str
    told: bool

    def belongs_to(self, session: str, run_id: str) -> bool:
        """Run ids are unique in a workspace, sessions in the world."""
        return self.run_id == run_id and self.session == session

    def __str__(self) -> str:
        return f"executor {self.run_id} {self.kind} {self.detail}{' (told to stop)' if self.told else ''}"


class Chunk(NamedTuple):
    """What a stream carried in one write. `joined`: it met the tail in this one. `behind`: it has not yet."""

    at: int
    data: bytes
    joined: bool
    behind: bool


class Connection:
    """One stream of a client: where it wanted to go on from (of which log), and everything it was sent."""

    def __init__(self, client_id: str, workspace_id: str, after: int | None, epoch: str, deltas: bool) -> None:
        self.client_id = client_id
        self.workspace_id = workspace_id
        self.after = after
        self.epoch = epoch
        self.deltas = deltas
        self.opened = 0
        self.opened_time = 0.0
        self.opened_life = 0
        self.greeting = b""
        self.chunks: list[Chunk] = []
        self.complete = False  # nobody cut it: at the end it had to hold everything

    def __str__(self) -> str:
        where = "now" if self.after is None else f"#{self.after}"
        kind = "deltas" if self.deltas else "whole messages"
        return f"stream   {self.client_id} opens {self.workspace_id} from {where}, {kind}"


class History:
    """The whole of it. `life` counts the server processes."""

    def __init__(self) -> None:
        self.life = 0
        self.time: Callable[[], float] = float
        self.lines: list[tuple[int, int, float, object]] = []
        self.asks: list[Ask] = []
        self.steps: list[Step] = []
        self.connections: list[Connection] = []
        self.ledgers: dict[str, Ledger] = {}
        self.stops: list[int] = []  # where a server process began to leave, or was gone
        self.violations: list[Violation] = []
        self.problems: list[BaseException] = []  # what broke, with its traceback
        self.counted: dict[str, int] = {}
        self.poisoned: set[int] = set()  # lives whose disk refused, also if it had written
        self.retired: dict[str, int] = {}  # client -> where it said goodbye for good
        self._at = 0

    def place(self, what: object) -> int:
        """Put something into the order; returns its place."""
        self._at += 1
        self.lines.append((self._at, self.life, self.time(), what))
        return self._at

    @property
    def at(self) -> int:
        return self._at

    def count(self, branch: str) -> None:
        self.counted[branch] = self.counted.get(branch, 0) + 1

    def goodbye(self, client_id: str) -> None:
        self.retired[client_id] = self.place(f"{client_id} retires")

    def violate(self, invariant: str, text: str) -> None:
        violation = Violation(invariant, text)
        self.violations.append(violation)
        self.place(f"VIOLATION {violation}")

    def asked(self, client_id: str, kind: str, arguments: dict[str, Any]) -> Ask:
        ask = Ask(len(self.asks) + 1, client_id, kind, arguments)
        self.asks.append(ask)
        ask.life, ask.asked_time = self.life, self.time()
        ask.asked = self.place(ask)
        return ask

    def answered(self, ask: Ask, status: AskStatus) -> None:
        ask.status = status
        ask.answered = self.place(Answered(ask, status))

    def stepped(self, session: str, run_id: str, kind: StepKind, detail: str, told: bool) -> None:
        step = Step(self._at + 1, session, run_id, kind, detail, told)
        self.place(step)
        self.steps.append(step)

    def opened(self, connection: Connection) -> None:
        connection.opened_life, connection.opened_time = self.life, self.time()
        connection.opened = self.place(connection)
        self.connections.append(connection)

    def stopped(self, how: str) -> None:
        self.stops.append(self.place(f"server   {how}"))

    def ended(self, how: str) -> None:
        """The server process is gone: what was asked and not answered never will be."""
        self.stopped(f"ends: {how}")
        for ask in self.asks:
            if ask.status == "pending":
                self.answered(ask, "lost")

    def committed(self, records: Sequence[Record]) -> None:
        """The disk has these now."""
        for record in records:
            match record:
                case FactRow():
                    self._store(record)
                case NewWorkspace():
                    self.ledgers[record.id] = Ledger(record)
                case Trim():
                    self.ledgers[record.workspace].floors.append(Floor(self._at, self.time(), record.floor))
                case _:
                    pass

    def _store(self, row: FactRow) -> None:
        ledger = self.ledgers[row.workspace]
        if row.seq != len(ledger.facts) + 1:
            self.violate("I12", f"{row.workspace}: fact {row.seq} was written after fact {len(ledger.facts)}")
        stored = Stored(row, fact_event(ledger.epoch, row), self._at + 1, self.time(), self.life)
        self.place(stored)
        ledger.add(stored)

    def tail(self, lines: int) -> str:
        """The end of it, for people; times are since the beginning."""
        began = self.lines[0][2] if self.lines else 0.0
        shown = self.lines[-lines:]
        return "\n".join(f"{at:6} life {life} {time - began:8.2f} {what}" for at, life, time, what in shown)
