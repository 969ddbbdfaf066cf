"""Questions to people: pending, then answered once, canceled by a person, withdrawn or expired.

The same as permissions (B28): the first answer wins and is told so, everyone later is told that it was not them (I9),
and no batch outlives its run (I11). A batch is answered whole, or not at all.
"""

from collections.abc import Sequence

import msgspec

from windlass import limits
from windlass.core.answers import check_answers, check_questions
from windlass.errors import TooMany
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.questions import QuestionBatch, QuestionNotification, QuestionOutcome, QuestionResponse


class Settled(msgspec.Struct, frozen=True):
    """The end of one batch: `resolved` tells whether this call decided it."""

    resolved: bool
    batch_id: str = ""
    facts: list[Fact] = []
    run_id: str = ""
    outcome: QuestionOutcome = "withdrawn"
    answers: tuple[QuestionResponse, ...] = ()


class Questions:
    """The batches of one workspace that are waiting for an answer, the oldest first."""

    def __init__(self) -> None:
        self.pending: dict[str, QuestionBatch] = {}

    def waiting(self, run_id: str) -> bool:
        return any(batch.run_id == run_id for batch in self.pending.values())

    def ask(self, batch: QuestionBatch, by: By) -> list[Fact]:
        """Put a batch before the people. Raises Invalid for one that nobody could answer, TooMany when enough wait."""
        check_questions(batch.tool_call_id, batch.questions)
        if len(self.pending) >= limits.PENDING_QUESTIONS:
            raise TooMany("Too many questions wait for people already. Decide for yourself, and say what you assumed.")
        self.pending[batch.id] = batch
        return [
            Fact("question_batch_request", "created", batch, by, batch.session_id, batch.run_id, key=batch.id),
        ]

    def answer(self, batch_id: str, responses: Sequence[QuestionResponse], by: By) -> Settled:
        """Answer a batch that still waits. Raises Invalid for answers that do not fit it: then it goes on waiting."""
        batch = self.pending.get(batch_id)
        if batch is None:
            return Settled(False, batch_id)
        return self._end(batch, "answered", by, check_answers(batch.questions, responses))

    def cancel(self, batch_id: str, by: By) -> Settled:
        """A person declines to answer."""
        return self._end_if_pending(batch_id, "canceled", by)

    def withdraw(self, run_id: str, by: By) -> list[Settled]:
        """The run is over or is being stopped: its questions go, everywhere (B25, I11)."""
        batches = [batch for batch in self.pending.values() if batch.run_id == run_id]
        return [self._end(batch, "withdrawn", by) for batch in batches]

    def withdraw_one(self, batch_id: str, by: By) -> Settled:
        """Whoever asked does not wait any more: nobody would read an answer."""
        return self._end_if_pending(batch_id, "withdrawn", by)

    def expire(self, batch_id: str) -> Settled:
        """Nobody was there to answer in time."""
        return self._end_if_pending(batch_id, "expired", By("server"))

    def _end_if_pending(self, batch_id: str, outcome: QuestionOutcome, by: By) -> Settled:
        batch = self.pending.get(batch_id)
        return Settled(False, batch_id) if batch is None else self._end(batch, outcome, by)

    def _end(
        self, batch: QuestionBatch, outcome: QuestionOutcome, by: By, answers: tuple[QuestionResponse, ...] = ()
    ) -> Settled:
        del self.pending[batch.id]
        return Settled(True, batch.id, [notification(batch, outcome, by, answers)], batch.run_id, outcome, answers)


def notification(
    batch: QuestionBatch, outcome: QuestionOutcome, by: By, answers: tuple[QuestionResponse, ...] = ()
) -> Fact:
    """How a batch ended, for everyone. There is none that says it was asked: to a client that knows no outcomes, any
    notification means that the batch is over."""
    body = QuestionNotification(batch.id, outcome, batch.session_id, by, answers)
    return Fact("question_batch_notification", "created", body, by, batch.session_id, batch.run_id)
