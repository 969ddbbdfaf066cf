"""One model call made into one message: streamed to the readers, counted, and tried again where that is safe."""

import asyncio
from collections.abc import Iterable

import msgspec

from windlass.agent.answer import Answer
from windlass.agent.budget import Budget
from windlass.agent.retry import retry_delay
from windlass.agent.settings import AgentSettings
from windlass.wire.execution import Events
from windlass.wire.messages import FinishReason
from windlass.wire.model import Chunk, FinishChunk, ModelError, ModelRequest, UsageChunk
from windlass.wire.run_events import MessageEnd, MessageStart, ResetMessage, UsageGained


class Unanswered(Exception):
    """The model gave no answer, and asking again would not help."""

    def __init__(self, error: ModelError, attempts: int) -> None:
        super().__init__(error.message)
        self.message = error.message
        self.is_overflow = error.kind == "overflow"
        self.details = f"{error.kind}, after {attempts} attempt(s)"


class Asking:
    """Asks the model of one run. `open` is the message that is started and not ended."""

    def __init__(self, settings: AgentSettings, events: Events, budget: Budget, call_ids: Iterable[str]) -> None:
        self._settings = settings
        self._events = events
        self._budget = budget
        self._call_ids = set(call_ids)
        self.open: Answer | None = None
        self.model_calls = 0  # since the newest user message, also those that failed
        self.prompt_tokens = 0  # as the provider counted them in the last attempt; 0: it did not say

    def start(self, *, is_summary: bool = False) -> Answer:
        """Announce a message. Before the model is called: a cancel while connecting has a message to end (B05)."""
        settings = self._settings
        message_id = settings.new_message_id()
        self._events.emit(
            MessageStart(
                message_id, "assistant", settings.model_name, settings.provider_name, [], is_summary=is_summary
            )
        )
        self.open = self._attempt(message_id, is_summary)
        return self.open

    async def ask(self, request: ModelRequest, *, is_summary: bool = False) -> Answer:
        """One whole answer. Raises Unanswered, and GaveUp when the budget is spent.

        Its message stays open either way; the next answer takes its place there if it is not ended before.
        """
        answer = self._anew(self.open, is_summary) if self.open else self.start(is_summary=is_summary)
        failures = empty_answers = 0
        while True:
            try:
                number = failures if is_summary else self._next_number()
                await self._stream(answer, msgspec.structs.replace(request, call_number=number))
                if not answer.is_empty:
                    return answer
                empty_answers += 1
                raise ModelError("The model answered with nothing.", retryable=empty_answers == 1)
            except ModelError as error:
                failures += 1
                delay = retry_delay(error, failures, self._settings.jitter)
                if delay is None:
                    raise Unanswered(error, failures) from error
                answer = self._anew(answer, is_summary)
                await self._settings.sleep(delay)

    async def end(self, answer: Answer, reason: FinishReason, message: str = "", details: str = "") -> None:
        """Make the end of a message a fact, and with it everything it says."""
        await self._events.durable(MessageEnd(answer.message_id, reason, message, details))
        self._call_ids |= {call.id for call in answer.calls}
        self.open = None

    async def give_way(self, message: str) -> None:
        """End the open message without the words it may have: something has to come before what it was to say."""
        if self.open is not None:
            await self.end(self._anew(self.open, is_summary=False), "error", message)

    def _next_number(self) -> int:
        self.model_calls += 1
        return self.model_calls - 1

    def _attempt(self, message_id: str, is_summary: bool) -> Answer:
        return Answer(message_id, self._events.emit, self._call_ids, takes_calls=not is_summary)

    def _anew(self, answer: Answer, is_summary: bool) -> Answer:
        """The same message from its beginning: readers must not see the first words twice (I16)."""
        if answer.has_begun:
            self._events.emit(ResetMessage(answer.message_id))
        self.open = self._attempt(answer.message_id, is_summary)
        return self.open

    async def _stream(self, answer: Answer, request: ModelRequest) -> None:
        budget, prices = self._budget, self._settings.prices
        self.prompt_tokens = 0
        budget.check()

        def take(chunk: Chunk) -> None:
            if isinstance(chunk, UsageChunk):
                cost = prices.cost(chunk.usage)
                self._events.emit(UsageGained(chunk.usage, cost))
                budget.add(chunk.usage, cost)
                self.prompt_tokens += chunk.usage.prompt_tokens
                return
            if not isinstance(chunk, FinishChunk):
                # Not at its end: an answer that is whole is not thrown away for the last of its tokens.
                budget.check()
            answer.take(chunk)

        try:
            # Not by its chunks alone: a provider that only says that it is still there would hold the run for ever.
            async with asyncio.timeout(budget.seconds_left()) as time:
                await self._settings.model.stream(request, take)
        except TimeoutError:
            if time.expired():
                raise budget.out_of_time() from None
            raise
