"""What a run spent its time on, from its facts: a plain function, which looks at nothing else.

Facts say when each thing began and ended. Of a run whose facts were trimmed only the newest of each message is left:
then its own times, in whole seconds, say when it began, and of the waiting for people nothing is known.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from windlass import limits
from windlass.wire.permissions import PermissionNotification, PermissionRequest
from windlass.wire.questions import QuestionBatch, QuestionNotification
from windlass.wire.runs import TERMINAL_STATES, Run
from windlass.wire.timeline import Span, Timeline


class _Data(msgspec.Struct):
    """Of a message's parts as much as a timeline needs; the words are passed over unread."""

    id: str = ""
    name: str = ""
    tool_call_id: str = ""
    is_error: bool = False
    metadata: str = ""
    reason: str = ""


class _Part(msgspec.Struct):
    type: str
    data: _Data


class MessageOutline(msgspec.Struct):
    id: str
    role: str = ""
    parts: list[_Part] = []
    model: str = ""
    provider: str = ""
    created_at: int = 0


Body = Run | MessageOutline | PermissionRequest | PermissionNotification | QuestionBatch | QuestionNotification


class RunFact(msgspec.Struct, frozen=True):
    time: float
    change: str
    body: Body


_KINDS: dict[str, Any] = {
    "run": Run,
    "message": MessageOutline,
    "permission_request": PermissionRequest,
    "permission_notification": PermissionNotification,
    "question_batch_request": QuestionBatch,
    "question_batch_notification": QuestionNotification,
}
_DECODERS = {kind: msgspec.json.Decoder(body).decode for kind, body in _KINDS.items()}


def decode(time: float, kind: str, change: str, body: bytes) -> RunFact | None:
    """A fact as it is stored; None for one of a kind, or of a thing, that takes no time."""
    decoder = _DECODERS.get(kind)
    return None if decoder is None or change == "deleted" else RunFact(time, change, decoder(body))


def timeline_of(run: Run, facts: Sequence[RunFact], all_there: bool = True) -> Timeline:
    """The spans of a run, by their beginning. `facts` are those of this run, in order.

    Each call of a tool has one span. Every span lies within the run, and one that waits for a person lies within the
    call that asked.
    """
    tracing = _Tracing(run, facts)
    for fact in facts:
        tracing.follow(fact)
    return tracing.timeline(all_there)


class _Tracing:
    def __init__(self, run: Run, facts: Sequence[RunFact]) -> None:
        self._run = run
        first = next((fact for fact in facts if isinstance(fact.body, Run)), None)
        self._whole = first is not None and first.change == "created"
        self._start = first.time if first is not None and self._whole else _seconds(run.created_at)
        self._started = self._ended = 0.0
        self._spans: list[Span] = []
        self._messages: dict[str, Span] = {}
        self._calls: dict[str, Span] = {}
        self._begun: set[str] = set()  # calls of which something was heard since the model asked for them
        self._waiting: dict[str, Span] = {}
        self._latest = 0.0  # when something last happened to a message
        self._tokens = (0, 0)
        self._answer: Span | None = None  # the newest of the model

    def follow(self, fact: RunFact) -> None:
        match fact.body:
            case Run():
                self._follow_run(fact.time, fact.body)
            case MessageOutline():
                self._follow_message(fact, fact.body)
            case PermissionRequest():
                label = f"{fact.body.tool_name}: {fact.body.action}"
                self._ask(fact, Span("permission", label, fact.time, tool_call_id=fact.body.tool_call_id), fact.body.id)
            case PermissionNotification():
                self._begin(fact.body.tool_call_id, fact.time)
                if fact.body.outcome != "asked":
                    self._answered(fact, fact.body.id, fact.body)
            case QuestionBatch():
                label = fact.body.questions[0].question if fact.body.questions else ""
                self._ask(fact, Span("question", label, fact.time, tool_call_id=fact.body.tool_call_id), fact.body.id)
            case QuestionNotification():
                if fact.body.outcome != "asked":
                    self._answered(fact, fact.body.batch_id, fact.body)

    # -- one kind of fact each ----------------------------------------------------------------------------------------

    def _follow_run(self, time: float, run: Run) -> None:
        self._run = run
        if run.started_at and not self._started:
            self._started = time if self._whole else _seconds(run.started_at)
        if run.state in TERMINAL_STATES and not self._ended:
            self._ended = time
        tokens = (run.usage.prompt_tokens, run.usage.completion_tokens)
        # Told when the model has told it, so that what came since the last time is the newest answer's.
        if self._whole and self._answer is not None:
            self._answer.prompt_tokens += max(0, tokens[0] - self._tokens[0])
            self._answer.completion_tokens += max(0, tokens[1] - self._tokens[1])
        self._tokens = tokens

    def _follow_message(self, fact: RunFact, message: MessageOutline) -> None:
        if message.role == "assistant":
            self._follow_answer(fact, message)
        elif message.role == "tool":
            for part in message.parts:
                if part.type == "tool_result":
                    self._follow_result(fact.time, part.data)
        self._latest = fact.time

    def _follow_answer(self, fact: RunFact, message: MessageOutline) -> None:
        finish = next((part.data.reason for part in message.parts if part.type == "finish"), "")
        span = self._messages.get(message.id)
        if span is None and message.model:  # without one it is our own word about how the run ended
            # A step begins after the one before it, which whole seconds do not say.
            began = fact.time if fact.change == "created" else max(float(message.created_at), self._latest)
            label = f"{message.provider}/{message.model}" if message.provider else message.model
            span = self._messages[message.id] = Span("model", label, began, message_id=message.id)
            self._spans.append(span)
            self._answer = span
        if not finish:
            return
        if span is not None and not span.end:
            span.end, span.outcome = fact.time, finish
        for part in message.parts:
            if part.type == "tool_call" and part.data.id not in self._calls:
                call = Span("tool", part.data.name, fact.time, message_id=message.id, tool_call_id=part.data.id)
                self._calls[part.data.id] = call
                self._spans.append(call)

    def _follow_result(self, time: float, result: _Data) -> None:
        call = self._calls.get(result.tool_call_id)
        if call is None or call.end:
            return
        call.end, call.outcome = time, "error" if result.is_error else ""
        if result.name == "agent":
            call.session_id = _agent_session(result.metadata)

    def _begin(self, call_id: str, time: float) -> None:
        """Calls of one answer may be carried out one after the other: each begins when it is first heard of."""
        call = self._calls.get(call_id)
        if call is not None and not call.end and call_id not in self._begun:
            self._begun.add(call_id)
            call.start = time

    def _ask(self, fact: RunFact, span: Span, id: str) -> None:
        self._begin(span.tool_call_id, fact.time)
        span.label = span.label[: limits.TIMELINE_LABEL_CHARACTERS]
        self._waiting[id] = span
        self._spans.append(span)

    def _answered(self, fact: RunFact, id: str, told: PermissionNotification | QuestionNotification) -> None:
        span = self._waiting.pop(id, None)
        if span is not None:
            span.end, span.outcome = fact.time, told.outcome
            span.by = told.by.name if told.by is not None else ""

    # -- the end ------------------------------------------------------------------------------------------------------

    def timeline(self, all_there: bool) -> Timeline:
        ended = self._ended or (_seconds(self._run.ended_at) if self._run.is_terminal else 0.0)
        ended = max(ended, self._start) if ended else 0.0
        queue = Span("queue", "", self._start, self._started or ended)
        spans = [queue] if not queue.end or queue.end - queue.start >= limits.TIMELINE_QUEUE_SECONDS else []
        spans += self._spans
        for span in spans:
            _clip(span, self._start, ended)
        for span in spans:
            call = self._calls.get(span.tool_call_id)
            if call is not None and span is not call:
                _clip(span, call.start, call.end)
        spans.sort(key=lambda span: span.start)
        whole = self._whole and all_there and len(spans) <= limits.TIMELINE_SPANS
        return Timeline(self._run.id, self._start, ended, whole, spans[: limits.TIMELINE_SPANS])


def _clip(span: Span, start: float, end: float) -> None:
    """Keep a span between two times: a clock can jump, and whole seconds begin before what happens in them. What goes
    on at `end` ends with it; 0 is no end."""
    latest = end or float("inf")
    span.start = min(max(span.start, start), latest)
    if span.end or end:
        span.end = min(max(span.end or end, span.start), latest)


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() if moment else 0.0


class _Agent(msgspec.Struct):
    id: str = ""


def _agent_session(metadata: str) -> str:
    """The session of the one agent that a call was about; "" for none, or several."""
    try:
        agents = msgspec.json.decode(metadata or "[]", type=list[_Agent])
    except msgspec.MsgspecError:
        return ""  # a tool of someone else's that has the same name
    return agents[0].id if len(agents) == 1 else ""
