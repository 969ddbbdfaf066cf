"""The agent loop of one run: ask the model, run the tools it asked for, repeat, until it ends its turn.

A step is one model call and its tools. Between steps people may steer: their message enters the conversation there. The
loop never writes how the run ended; it returns what it knows and the owner of the run decides.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from windlass import limits
from windlass.agent.answer import Answer
from windlass.agent.calls import CallRunner
from windlass.agent.history import conversation
from windlass.agent.opening import opening, tool_message, user_message
from windlass.agent.retry import retry_delay
from windlass.agent.settings import AgentSettings
from windlass.agent.window import estimate_bytes, fit
from windlass.wire.delegation import WaitForAgents
from windlass.wire.execution import Events, RunOutcome, RunSpec, Steer, SteerMessage
from windlass.wire.messages import ToolCallData, ToolResultData
from windlass.wire.model import Chunk, ModelError, ModelRequest, ToolSpec, UsageChunk
from windlass.wire.run_events import MessageEnd, MessageStart, ResetMessage, SteerTaken, Step, UsageGained
from windlass.wire.runs import Attachment

AGENT_TOOL = "agent"
_CUT_OFF = "Not run: the answer that asked for this was cut off before its end."


class GaveUp(Exception):
    """The run cannot go on. `message` is for a person; `details` say more for whoever looks closer."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class AgentLoop:
    """One run. Made for it and thrown away after it."""

    def __init__(self, settings: AgentSettings, spec: RunSpec, events: Events, steer: Steer) -> None:
        self._settings = settings
        self._spec = spec
        self._events = events
        self._steer = steer
        tools = {tool.name: tool for tool in settings.tools(spec, events)}
        self._tool_specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in tools.values()]
        self._system = settings.prompt(spec.workspace_path, list(tools))
        self._calls = CallRunner(tools, events, settings.new_message_id)
        self._messages = opening(spec)
        self._model_calls = 0  # since the newest user message
        self._has_agents = False
        self._open: Answer | None = None  # the message that is started and not ended
        self._last_step: object = None
        self._repetitions = 0
        self._time = asyncio.get_running_loop().time
        self._began_at = self._time()
        self._deadline = 0.0  # as of the last look; people may have taken their time since

    async def run(self) -> RunOutcome:
        try:
            return await self._steps()
        except GaveUp as reason:
            return await self._end_with_error(reason)

    async def _steps(self) -> RunOutcome:
        for number in range(1, self._settings.max_steps + 1):
            self._check_time()
            self._take_steers()
            self._events.emit(Step(number))
            answer = await self._answer()
            if answer.reason == "tool_use":
                self._check_progress(answer.calls, await self._run_tools(answer.calls))
                continue
            # Cut off or filtered: half a call must not be run, and a call without a result would spoil the history.
            self._remember(await self._calls.refuse(answer.calls, _CUT_OFF))
            if not self._take_steers() and not await self._hear_from_agents():
                return RunOutcome("completed")
        raise GaveUp(
            f"The run was stopped after {self._settings.max_steps} steps. Send another message to let it go on."
        )

    def _take_steers(self) -> bool:
        """Let what people sent meanwhile into the conversation. No await from the taking to the last event."""
        taken = self._steer.take()
        for message in taken:
            self._let_in(message)
        return bool(taken)

    def _let_in(self, message: SteerMessage) -> None:
        self._events.emit(SteerTaken(message.run_id))
        self._add_user(message.message_id, message.text, message.attachments)

    def _add_user(self, message_id: str, text: str, attachments: Sequence[Attachment] = ()) -> None:
        self._messages.append(user_message(self._spec, message_id, text, attachments))
        self._model_calls = 0

    async def _hear_from_agents(self) -> bool:
        """The model ended its turn while agents of its own still work: go on when one has ended, or when people say
        something meanwhile. Without this their work would be thrown away with the run."""
        if not self._has_agents:
            return False
        ended = asyncio.ensure_future(self._events.delegate(WaitForAgents(until="any", report=True)))
        told = asyncio.ensure_future(self._steer.next())
        try:
            await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
            if not told.done() and not ended.result().error:
                await asyncio.wait((told,))  # the report was sent before the reply, and may be slower
        finally:
            for task in (ended, told):
                task.cancel()
            await asyncio.wait((ended, told))
        if told.cancelled():
            return False  # each of them has been heard
        self._let_in(told.result())
        return True

    async def _answer(self) -> Answer:
        """One whole answer of the model, its end made a fact; retried where that is safe."""
        settings, events = self._settings, self._events
        answer = self._start_answer()
        failures = empty_answers = 0
        while True:
            try:
                await self._stream(answer)
                if not answer.is_empty:
                    break
                empty_answers += 1
                raise ModelError("The model answered with nothing.", retryable=empty_answers == 1)
            except ModelError as error:
                failures += 1
                delay = retry_delay(error, failures, settings.jitter)
                if delay is None:
                    raise GaveUp(error.message, f"{error.kind}, after {failures} attempt(s)") from error
                if answer.has_begun:
                    events.emit(ResetMessage(answer.message_id))
                answer = self._open = self._new_attempt(answer.message_id)
                await settings.sleep(delay)
        # The calls are facts before any tool runs: after a crash everyone can see what may have had an effect.
        await events.durable(MessageEnd(answer.message_id, answer.reason))
        self._open = None
        self._messages.append(answer.message(self._spec.session_id, settings.model_name, settings.provider_name))
        return answer

    def _start_answer(self) -> Answer:
        """Announced before the model is called, so that a cancel while connecting has a message to end (B05)."""
        settings = self._settings
        message_id = settings.new_message_id()
        self._events.emit(MessageStart(message_id, "assistant", settings.model_name, settings.provider_name))
        self._open = self._new_attempt(message_id)
        return self._open

    def _new_attempt(self, message_id: str) -> Answer:
        taken = {call.id for message in self._messages for call in message.tool_calls}
        return Answer(message_id, self._events.emit, taken)

    async def _stream(self, answer: Answer) -> None:
        request = self._request()
        self._model_calls += 1

        def take(chunk: Chunk) -> None:
            if self._time() > self._deadline:
                self._check_time()
            if isinstance(chunk, UsageChunk):
                self._events.emit(UsageGained(chunk.usage, self._settings.prices.cost(chunk.usage)))
            else:
                answer.take(chunk)

        await self._settings.model.stream(request, take)

    def _request(self) -> ModelRequest:
        settings = self._settings
        messages = conversation(self._messages)
        if settings.context_window:
            fixed = estimate_bytes(self._system.encode() + msgspec.json.encode(self._tool_specs))
            messages = fit(messages, settings.context_window - settings.default_max_tokens - fixed)
        return ModelRequest(
            model=settings.model_name,
            system=self._system,
            messages=messages,
            tools=self._tool_specs,
            max_tokens=settings.default_max_tokens,
            reasoning_effort=self._spec.reasoning_effort,
            session_id=self._spec.session_id,
            call_number=self._model_calls,
        )

    async def _run_tools(self, calls: Sequence[ToolCallData]) -> list[ToolResultData]:
        self._has_agents = self._has_agents or any(call.name == AGENT_TOOL for call in calls)
        results = await self._calls.run(calls)
        self._remember(results)
        return results

    def _remember(self, results: Sequence[ToolResultData]) -> None:
        self._messages += [tool_message(self._spec, result) for result in results]

    def _check_progress(self, calls: Sequence[ToolCallData], results: Sequence[ToolResultData]) -> None:
        """Stop a model that asks for the same again and again and gets the same."""
        step = [(call.name, call.input, result.content) for call, result in zip(calls, results, strict=True)]
        self._repetitions = self._repetitions + 1 if step == self._last_step else 1
        self._last_step = step
        if self._repetitions >= limits.IDENTICAL_STEPS:
            names = ", ".join(sorted({call.name for call in calls}))
            raise GaveUp(
                f"The run was stopped: the model made the same tool calls ({names}) with the same results "
                f"{self._repetitions} times in a row. Tell it what to do differently."
            )

    def _check_time(self) -> None:
        # The time people took to answer is theirs: a permission given in the morning must not end the run.
        self._deadline = self._began_at + limits.RUN_SECONDS + self._calls.waited_seconds
        if self._time() > self._deadline:
            raise GaveUp(f"The run was stopped after {limits.RUN_SECONDS / 3600:g} hours of work.")

    async def _end_with_error(self, reason: GaveUp) -> RunOutcome:
        """Say why in the conversation itself, in the message that is open or in one of its own."""
        answer = self._open or self._start_answer()
        await self._events.durable(MessageEnd(answer.message_id, "error", reason.message, reason.details))
        await self._calls.refuse(answer.calls, _CUT_OFF)
        return RunOutcome("failed", reason.message)
