"""The tool calls of one step: understood, approved, run, and their results made facts.

Every call that comes in leaves with exactly one result, also one that makes no sense or was declined (I7). Nothing runs
before its exact plan was granted (I10).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import msgspec

from windlass.agent.arguments import BadArguments, parse_arguments
from windlass.agent.plan import WITHHELD, fits_plan
from windlass.agent.results import ResultMessage
from windlass.wire.execution import Events, PermissionAsk, Verdict
from windlass.wire.messages import ToolCallData, ToolResultData
from windlass.wire.tools import StreamingPlan, Tool, ToolError, ToolOutput, ToolPlan

Answered = TypeVar("Answered")

_REFUSED: dict[Verdict, str] = {
    "denied": "Denied: the user declined this call, and it was not run. Do not repeat it or look for a way around it; "
    "say what you wanted to do and why, or ask what they would like instead.",
    "withdrawn": "Withdrawn: the request for permission was taken back before anyone answered, and the call was not "
    "run. The user has not agreed to it.",
    "expired": "Expired: nobody answered the request for permission in time, and the call was not run. The user has "
    "not agreed to it; do not simply repeat it.",
}


class CallRunner:
    """Runs the calls of one run's steps. `waited_seconds` is how long it waited for people so far; `is_waiting`: one of
    the last calls told of something that is still at work.

    `withheld` are names of tools that there are, but not in plan mode.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        events: Events,
        new_message_id: Callable[[], str],
        withheld: frozenset[str] = frozenset(),
    ) -> None:
        self._tools = tools
        self._events = events
        self._new_message_id = new_message_id
        self._withheld = withheld
        self.waited_seconds = 0.0
        self.is_waiting = False

    async def run(self, calls: Sequence[ToolCallData]) -> list[ToolResultData]:
        """A result for each call, in order. Calls that only read and stand next to each other run at the same time."""
        results: list[ToolResultData] = []
        self.is_waiting = False
        for batch in self._batches(calls):
            results += await self._together(batch)
        return results

    async def refuse(self, calls: Sequence[ToolCallData], why: str) -> list[ToolResultData]:
        """An error result for each call, without running any."""
        return [await self._message(call).conclude(_error(why)) for call in calls]

    def _batches(self, calls: Sequence[ToolCallData]) -> Iterator[list[ToolCallData]]:
        batch: list[ToolCallData] = []
        for call in calls:
            if not self._only_reads(call):
                if batch:
                    yield batch
                    batch = []
                yield [call]
            else:
                batch.append(call)
        if batch:
            yield batch

    def _only_reads(self, call: ToolCallData) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.read_only

    async def _together(self, batch: list[ToolCallData]) -> list[ToolResultData]:
        if len(batch) == 1:
            return [await self._carry_out(batch[0])]
        try:
            # A group, not gather: when one breaks or the run is cancelled, the others must not go on unattended.
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._carry_out(call)) for call in batch]
        except ExceptionGroup as failures:
            # The first one is what happened; "unhandled errors in a TaskGroup" would tell nobody anything.
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _carry_out(self, call: ToolCallData) -> ToolResultData:
        message = self._message(call)
        output = await self._output(call, message.show)
        self.is_waiting = self.is_waiting or output.goes_on
        return await message.conclude(output)

    def _message(self, call: ToolCallData) -> ResultMessage:
        return ResultMessage(call, self._events, self._new_message_id)

    async def _output(self, call: ToolCallData, show: Callable[[str], None]) -> ToolOutput:
        tool = self._tools.get(call.name)
        if tool is None:
            return _error(self._no_such_tool(call.name))
        try:
            # In a thread: a plan may read the file it is about, and compare a megabyte of it.
            plan = await asyncio.to_thread(_plan, tool, call)
            verdict = await self._approve(msgspec.structs.replace(plan.ask, read_only=fits_plan(tool)))
            if verdict != "granted":
                return _error(_REFUSED[verdict])
            return await self._run(tool, plan, show)
        except (BadArguments, ToolError) as error:
            return _error(str(error))

    def _no_such_tool(self, name: str) -> str:
        if name in self._withheld:
            return WITHHELD.format(name=name)
        return f"There is no tool {name!r}. There are: {', '.join(sorted(self._tools)) or 'none'}."

    async def _run(self, tool: Tool, plan: ToolPlan, show: Callable[[str], None]) -> ToolOutput:
        streams = getattr(plan, "streams", False)
        running = cast(StreamingPlan, plan).run(show) if streams else plan.run()
        return await (self._for_people(running) if getattr(tool, "waits_for_people", False) else running)

    async def _approve(self, ask: PermissionAsk) -> Verdict:
        return await self._for_people(self._events.approve(ask))

    async def _for_people(self, waiting: Awaitable[Answered]) -> Answered:
        """Wait for what people say. Calls that wait at the same time count twice: that errs on the side of patience."""
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            return await waiting
        finally:
            self.waited_seconds += loop.time() - asked_at


def _plan(tool: Tool, call: ToolCallData) -> ToolPlan:
    return tool.plan(parse_arguments(call.input), call.id)


def _error(message: str) -> ToolOutput:
    return ToolOutput(content=message, is_error=True)
