"""What clients sent and what they were told: the side of the comparison that the server has no part in."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from windlass.testing.server_process import Event


@dataclass
class SentPrompt:
    """One prompt under a run id the client chose. Sent again after a crash when its answer never came."""

    workspace: str
    body: dict[str, Any]
    answers: list[tuple[int, Any]] = field(default_factory=list)
    times_sent: int = 0

    @property
    def run_id(self) -> str:
        return str(self.body["run_id"])

    @property
    def accepted(self) -> bool:
        return any(status == 202 for status, _ in self.answers)

    @property
    def refused(self) -> bool:
        """Every time it was sent it was answered, and every answer was no."""
        return len(self.answers) == self.times_sent and not self.accepted


@dataclass
class SentCancel:
    """A cancel of a session or of a run, and its answer (None: it never came)."""

    workspace: str
    kind: str
    target: str
    status: int = 0
    answer: Any = None


@dataclass
class SentAnswer:
    """An answer to a permission request; `resolved` is what the client was told (None: nothing)."""

    workspace: str
    permission_id: str
    action: str
    resolved: bool | None = None


@dataclass
class Watched:
    """Everything one client received on its streams, over all its reconnects."""

    workspace: str
    name: str
    facts: list[Event] = field(default_factory=list)
    connections: int = 0
    resets: int = 0


@dataclass
class Told:
    """The whole record."""

    prompts: dict[str, SentPrompt] = field(default_factory=dict)
    cancels: list[SentCancel] = field(default_factory=list)
    answers: list[SentAnswer] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    start_seconds: list[float] = field(default_factory=list)
    answers_to_go: int = 0  # after this many more answers `strike` is called, at once; 0: never
    strike: Callable[[], None] = lambda: None

    def answered(self) -> None:
        """A client has just been told something. What was told must be there, however soon the server dies."""
        if self.answers_to_go:
            self.answers_to_go -= 1
            if not self.answers_to_go:
                self.strike()
