"""Sums a conversation up when it outgrows the model's window, so that the run can go on.

The request for it is the conversation as it was sent all along with one message more, so that the provider finds it in
its cache. The summary is a message like any other, which people can read; from then on it is sent in place of
everything before it (`summary.py`).
"""

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from windlass import limits
from windlass.agent.answer import Answer
from windlass.agent.asking import Asking, Unanswered
from windlass.agent.gauge import Gauge
from windlass.agent.history import History
from windlass.agent.summary import INSTRUCTION, asked_for, attached
from windlass.agent.window import estimate, fit
from windlass.wire.execution import Events
from windlass.wire.messages import Finish, FinishData, FinishReason, Message, Part, Text, TextData
from windlass.wire.model import ModelRequest, TextChunk
from windlass.wire.run_events import PartAdded

_OUR_BLOCK = -1  # no provider numbers its texts so: what we add to a summary is a text of its own


class NotSummedUp(Exception):
    """There is no summary. `message` is for a person; `record` is what was stored instead."""

    def __init__(self, message: str, record: Message) -> None:
        super().__init__(message)
        self.message = message
        self.record = record


class Compaction:
    """Makes the summaries of one run."""

    def __init__(self, asking: Asking, gauge: Gauge, events: Events, history: History) -> None:
        self._asking = asking
        self._gauge = gauge
        self._events = events
        self._history = history

    async def sum_up(self, request: ModelRequest, stored: Sequence[Message], asked: Sequence[Message]) -> Message:
        """The summary of `stored`, as it is stored itself. Raises NotSummedUp, its message ended, or GaveUp.

        `request` is what a step would send, but for its messages; `asked`: what people want of this run.
        """
        try:
            answer = await self._ask(request, stored)
        except Unanswered as refusal:
            return await self._fail(refusal.message, "error", stored[-1])
        if answer.reason != "end_turn":
            return await self._fail(f"The summary was cut off ({answer.reason}).", answer.reason, stored[-1])
        if repeated := asked_for(asked):
            answer.take(TextChunk(repeated, _OUR_BLOCK))
        files = attached(asked, self._gauge.budget_tokens)
        for file in files:
            self._events.emit(PartAdded(answer.message_id, file))
        await self._asking.end(answer, "end_turn")
        return _stored(answer, "end_turn", stored[-1], files)

    async def _ask(self, request: ModelRequest, stored: Sequence[Message]) -> Answer:
        messages = self._history.sent(stored)
        instruction = msgspec.structs.replace(messages[-1], id="", role="user", parts=[Text(TextData(INSTRUCTION))])
        sent = messages if self._gauge.fits(stored, estimate(instruction)) else fit(messages, self._room(instruction))
        for cuts in range(1, limits.SUMMARY_CUTS + 2):
            try:
                return await self._asking.ask(_with(request, [*sent, instruction]), is_summary=True)
            except Unanswered as refusal:
                if not refusal.is_overflow or cuts > limits.SUMMARY_CUTS:
                    raise
                self._gauge.overflowed(stored)
                sent = fit(messages, self._room(instruction) // 2**cuts)
        raise AssertionError("the last attempt returns or raises")

    def _room(self, instruction: Message) -> int:
        return self._gauge.budget_tokens - self._gauge.fixed_tokens - estimate(instruction)

    async def _fail(self, why: str, reason: FinishReason, like: Message) -> NoReturn:
        answer = self._asking.open or self._asking.start(is_summary=True)
        message = f"The conversation could not be summed up. {why}"
        await self._asking.end(answer, reason, message)
        raise NotSummedUp(message, _stored(answer, reason, like))


def _with(request: ModelRequest, messages: list[Message]) -> ModelRequest:
    return msgspec.structs.replace(request, messages=messages)


def _stored(answer: Answer, reason: FinishReason, like: Message, files: Sequence[Part] = ()) -> Message:
    parts = [*answer.parts(), *files, Finish(FinishData(reason, 0))]
    return msgspec.structs.replace(like, id=answer.message_id, role="assistant", parts=parts, is_summary_message=True)
