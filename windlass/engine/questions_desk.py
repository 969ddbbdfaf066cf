"""Where agents put questions to people: the batches of a workspace, with those who wait for them.

`core/questions.py` decides; here the facts are committed and the asker is woken. Nothing but an answer to the batch
itself answers it: no prompt, no steering message, no letter (B28).
"""

import asyncio
from collections.abc import Callable, Sequence

from windlass.config import Config
from windlass.core.lane import Entry
from windlass.core.questions import Questions, Settled
from windlass.engine.context import Context
from windlass.engine.desk import SERVER
from windlass.engine.waiting import Waiting
from windlass.errors import WindlassError
from windlass.journal.log import Log
from windlass.wire.delegation import AskQuestions, OwnerReply
from windlass.wire.events import Fact
from windlass.wire.permissions import By
from windlass.wire.questions import QuestionBatch, QuestionResponse


class QuestionsDesk:
    """`above` are the sessions above a sub-agent's, the root first."""

    def __init__(self, context: Context, log: Log, waiting: Waiting, above: Callable[[str], list[str]]) -> None:
        self.questions = Questions()
        self._context = context
        self._log = log
        self._waiting = waiting
        self._above = above
        self._asking: dict[str, asyncio.Future[tuple[Settled, int]]] = {}  # by batch id
        waiting.add(self)

    async def ask(self, entry: Entry, request: AskQuestions, config: Config) -> OwnerReply:
        """Ask everyone; returns when the end of it is on disk. What nobody could answer is refused with an error."""
        batch = self._batch(entry, request)
        try:
            facts = self.questions.ask(batch, entry.by)
        except WindlassError as error:
            await self._log.durable(self._log.head)
            return OwnerReply(error=error.message)
        answer: asyncio.Future[tuple[Settled, int]] = asyncio.get_running_loop().create_future()
        self._asking[batch.id] = answer
        self._log.append([*self._waiting.state(batch.run_id, entry.by), *facts])
        self._waiting.review(config)
        try:
            settled, head = await answer
        except asyncio.CancelledError:
            self._take_back(batch.id)
            raise
        finally:
            self._asking.pop(batch.id, None)
        await self._log.durable(head)
        return OwnerReply(outcome=settled.outcome, answers=settled.answers)

    def _batch(self, entry: Entry, request: AskQuestions) -> QuestionBatch:
        session_id = entry.run.session_id
        return QuestionBatch(
            id=self._context.new_id("ask"),
            session_id=session_id,
            tool_call_id=request.tool_call_id,
            questions=request.questions,
            root_session_id=next(iter(self._above(session_id)), session_id),
            run_id=entry.run.id,
        )

    def _take_back(self, batch_id: str) -> None:
        """The asker is gone, and its run may go on (a worker withdrew it): people would answer a question of nobody."""
        if not self._log.closed:
            self._settle(self.questions.withdraw_one(batch_id, SERVER), SERVER)

    # -- what people do -----------------------------------------------------------------------------------------------

    async def answer(self, batch_id: str, responses: Sequence[QuestionResponse], by: By) -> bool:
        """Answer a batch; whether this answer decided it. Raises Invalid, and then it goes on waiting."""
        try:
            settled = self.questions.answer(batch_id, responses, by)
        except WindlassError:
            await self._log.durable(self._log.head)  # what the answer does not fit must be on disk before it is told
            raise
        self._settle(settled, by)
        # A loser waits too: what it lost to must be on disk.
        await self._log.durable(self._log.head)
        return settled.resolved

    async def cancel(self, batch_id: str, by: By) -> bool:
        """Decline to answer a batch ("": every one that waits); whether that decided anything."""
        decided = False
        for id in [batch_id] if batch_id else list(self.questions.pending):
            # One after the other: a run with two batches goes on when the second has ended, not when the first has.
            settled = self.questions.cancel(id, by)
            self._settle(settled, by)
            decided = decided or settled.resolved
        await self._log.durable(self._log.head)
        return decided

    # -- how a batch ends ---------------------------------------------------------------------------------------------

    def _settle(self, settled: Settled, by: By) -> None:
        """Commit the notification and the run that goes on (unless it waits for something else); wake the asker."""
        if settled.resolved:
            self._log.append([*settled.facts, *self._waiting.state(settled.run_id, by)])
            self._tell(settled)

    def _tell(self, settled: Settled) -> None:
        answer = self._asking.get(settled.batch_id)
        if answer is not None and not answer.done():
            answer.set_result((settled, self._log.head))

    def withdraw(self, run_ids: list[str], by: By) -> list[Fact]:
        """The questions of these runs go, everywhere; the facts are the caller's to commit with its own."""
        facts: list[Fact] = []
        for run_id in run_ids:
            for settled in self.questions.withdraw(run_id, by):
                facts += settled.facts
                # Whoever asked may not be cancelled with the run (a task of the executor's own): it must not wait on.
                self._tell(settled)
        return facts

    # -- as one kind of what people are asked -------------------------------------------------------------------------

    @property
    def has_pending(self) -> bool:
        return bool(self.questions.pending)

    def is_waiting(self, run_id: str) -> bool:
        return self.questions.waiting(run_id)

    def expire_pending(self) -> None:
        for batch_id in list(self.questions.pending):
            self._settle(self.questions.expire(batch_id), SERVER)
