"""The agent loop of one run: ask the model, run the tools it asked for, repeat, until it ends its turn.

A step is one model call and its tools. Between steps people may steer: their message enters the conversation there. The
loop never writes how the run ended; it returns what it knows and the owner of the run decides.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from windlass import limits
from windlass.agent.answer import Answer
from windlass.agent.asking import Asking, Unanswered
from windlass.agent.budget import Budget
from windlass.agent.calls import CallRunner
from windlass.agent.circles import Circles
from windlass.agent.compaction import Compaction, NotSummedUp
from windlass.agent.gauge import Gauge, can_be_summed_up
from windlass.agent.giving_up import GaveUp
from windlass.agent.history import History
from windlass.agent.opening import ended_message, opening, tool_message, user_message
from windlass.agent.plan import AGENT_TOOL, fits_plan
from windlass.agent.settings import AgentSettings
from windlass.agent.title import titled
from windlass.agent.window import estimate_bytes, fit
from windlass.wire.delegation import WaitForAgents
from windlass.wire.execution import Events, RunOutcome, RunSpec, Steer, SteerMessage
from windlass.wire.messages import ToolCallData, ToolResultData
from windlass.wire.model import ModelRequest, ToolSpec
from windlass.wire.run_events import SteerTaken, Step

_CUT_OFF = "Not run: the answer that asked for this was cut off before its end."
_TOO_LONG = "The conversation is too long for the model's context window. It is summed up, and the run goes on."


class AgentLoop:
    """One run. Made for it and thrown away after it."""

    def __init__(self, settings: AgentSettings, spec: RunSpec, events: Events, steer: Steer) -> None:
        self._settings = settings
        self._spec = spec
        self._events = events
        self._steer = steer
        there_are = {tool.name: tool for tool in settings.tools(spec, events)}
        tools = {name: tool for name, tool in there_are.items() if not spec.plan or fits_plan(tool)}
        self._tool_specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in tools.values()]
        self._system = settings.prompt(spec.workspace_path, list(tools), spec.plan)
        self._calls = CallRunner(tools, events, settings.new_message_id, frozenset(there_are.keys() - tools.keys()))
        self._messages = opening(spec)
        self._asked = self._messages[-1:]  # what people want of this run: the prompt, and what they steered
        self._budget = Budget(
            asyncio.get_running_loop().time,
            lambda: self._calls.waited_seconds,
            max_seconds=settings.max_seconds or limits.RUN_SECONDS,
            max_tokens=settings.max_tokens,
            max_cost=settings.max_cost,
            prompt_max_cost=spec.max_cost,
        )
        taken = (call.id for message in self._messages for call in message.tool_calls)
        self._asking = Asking(settings, events, self._budget, taken)
        fixed = estimate_bytes(self._system.encode() + msgspec.json.encode(self._tool_specs))
        self._gauge = Gauge(max(0, settings.context_window - settings.default_max_tokens), fixed)
        self._history = History(images=settings.images)
        self._compaction = Compaction(self._asking, self._gauge, events, self._history)
        self._may_compact = True
        self._circles = Circles()
        self._has_agents = False

    async def run(self) -> RunOutcome:
        async with titled(self._spec, self._events, self._settings.small, self._budget):
            await self._read_history()
            try:
                return await (self._sum_up() if self._spec.purpose == "summarize" else self._steps())
            except GaveUp as reason:
                return await self._end_with_error(reason)

    async def _steps(self) -> RunOutcome:
        for number in range(1, self._settings.max_steps + 1):
            self._budget.check()
            self._take_steers()
            if self._may_compact and self._gauge.wants_compaction(self._messages):
                await self._compact()
            self._events.emit(Step(number))
            answer = await self._answer()
            if answer.reason == "tool_use":
                results = await self._run_tools(answer.calls)
                self._circles.check(answer.calls, results, is_waiting=self._calls.is_waiting)
                continue
            # Cut off or filtered: half a call must not be run, and a call without a result would spoil the history.
            self._remember(await self._calls.refuse(answer.calls, _CUT_OFF))
            if not self._take_steers() and not await self._hear_from_agents():
                return RunOutcome("completed")
        raise GaveUp(
            f"The run was stopped after {self._settings.max_steps} steps. Send another message to let it go on."
        )

    async def _sum_up(self) -> RunOutcome:
        """A run that only sums the conversation up, because a person wants it."""
        if not can_be_summed_up(self._messages):
            raise GaveUp("There is nothing to sum up yet.")
        self._events.emit(Step(1))
        try:
            await self._compaction.sum_up(self._request(), self._messages, [])
        except NotSummedUp as failure:
            return RunOutcome("failed", failure.message)
        return RunOutcome("completed")

    # -- what people say meanwhile ---------------------------------------------------------------------------------

    def _take_steers(self) -> bool:
        """Let what people sent meanwhile into the conversation. No await from the taking to the last event."""
        taken = self._steer.take()
        for message in taken:
            self._let_in(message)
        return bool(taken)

    def _let_in(self, steer: SteerMessage) -> None:
        self._events.emit(SteerTaken(steer.run_id))
        message = user_message(self._spec, steer.message_id, steer.text, steer.attachments)
        self._messages.append(message)
        self._asked.append(message)
        self._asking.model_calls = 0

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

    # -- the model -------------------------------------------------------------------------------------------------

    async def _answer(self) -> Answer:
        """One whole answer of the model, its end made a fact."""
        try:
            answer = await self._ask()
        except Unanswered as refusal:
            if not refusal.is_overflow or not can_be_summed_up(self._messages):
                raise GaveUp(refusal.message, refusal.details) from refusal
            answer = await self._answer_after_overflow()
        # The calls are facts before any tool runs: after a crash everyone can see what may have had an effect.
        await self._asking.end(answer, answer.reason)
        settings = self._settings
        self._messages.append(answer.message(self._spec.session_id, settings.model_name, settings.provider_name))
        return answer

    async def _answer_after_overflow(self) -> Answer:
        """The provider found it too long, whatever we thought: make room, and ask once more."""
        self._gauge.overflowed(self._messages)
        # Ended first: the summary stands for every message before it, and must not stand for the answer itself.
        await self._asking.give_way(_TOO_LONG)
        self._messages.append(ended_message(self._spec, "error"))
        await self._compact()
        try:
            return await self._ask()
        except Unanswered as refusal:
            raise GaveUp(refusal.message, refusal.details) from refusal

    async def _ask(self) -> Answer:
        count, is_whole = len(self._messages), self._gauge.fits(self._messages)
        answer = await self._asking.ask(self._request())
        if is_whole:
            self._gauge.report(self._asking.prompt_tokens, count)
        return answer

    async def _compact(self) -> None:
        """Sum everything up and go on from there. Where that fails, the oldest steps are left out instead."""
        try:
            self._messages = [await self._compaction.sum_up(self._request(), self._messages, self._asked)]
        except NotSummedUp as failure:
            self._messages.append(failure.record)
            self._may_compact = False  # the longest request there is would be paid for again at every step
        self._gauge.forget()
        self._history.forget()

    async def _read_history(self) -> None:
        """A session of thousands of messages is read in slices: everyone else on this loop waits for one of them."""
        for end in self._history.read(self._messages):
            self._gauge.count(self._messages, end)
            await asyncio.sleep(0)

    def _request(self) -> ModelRequest:
        settings = self._settings
        messages = self._history.sent(self._messages)
        if not self._gauge.fits(self._messages):
            messages = fit(messages, self._gauge.budget_tokens - self._gauge.fixed_tokens)
        return ModelRequest(
            model=settings.model_name,
            system=self._system,
            messages=messages,
            tools=self._tool_specs,
            max_tokens=settings.default_max_tokens,
            reasoning_effort=self._spec.reasoning_effort,
            session_id=self._spec.session_id,
        )

    # -- tools -----------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: Sequence[ToolCallData]) -> list[ToolResultData]:
        self._has_agents = self._has_agents or any(call.name == AGENT_TOOL for call in calls)
        results = await self._calls.run(calls)
        self._remember(results)
        return results

    def _remember(self, results: Sequence[ToolResultData]) -> None:
        self._messages += [tool_message(self._spec, result) for result in results]

    async def _end_with_error(self, reason: GaveUp) -> RunOutcome:
        """Say why in the conversation itself, in the message that is open or in one of its own."""
        answer = self._asking.open or self._asking.start()
        await self._asking.end(answer, "error", reason.message, reason.details)
        await self._calls.refuse(answer.calls, _CUT_OFF)
        return RunOutcome("failed", reason.message)
