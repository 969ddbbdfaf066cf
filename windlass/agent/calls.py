"""The tool calls of one step: understood, approved, run, and their results made facts.

Every call that comes in leaves with exactly one result, also one that makes no sense or was declined (I7). Nothing runs
before its exact plan was granted (I10).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from windlass import limits
from windlass.agent.arguments import BadArguments, parse_arguments
from windlass.agent.history import NO_OUTPUT
from windlass.wire.execution import Events, PermissionAsk, Verdict
from windlass.wire.messages import ToolCallData, ToolResult, ToolResultData
from windlass.wire.run_events import FileWritten, MessageStart
from windlass.wire.tools import Tool, ToolError, ToolOutput

_REFUSED: dict[Verdict, str] = {
    "denied": "Denied: the user declined this call, and it was not run. Do not repeat it or look for a way around it; "
    "say what you wanted to do and why, or ask what they would like instead.",
    "withdrawn": "Withdrawn: the request for permission was taken back before anyone answered, and the call was not "
    "run. The user has not agreed to it.",
    "expired": "Expired: nobody answered the request for permission in time, and the call was not run. The user has "
    "not agreed to it; do not simply repeat it.",
}


class CallRunner:
    """Runs the calls of one run's steps. `waited_seconds` is how long it waited for people so far."""

    def __init__(self, tools: Mapping[str, Tool], events: Events, new_message_id: Callable[[], str]) -> None:
        self._tools = tools
        self._events = events
        self._new_message_id = new_message_id
        self.waited_seconds = 0.0

    async def run(self, calls: Sequence[ToolCallData]) -> list[ToolResultData]:
        """A result for each call, in order. Calls that only read and stand next to each other run at the same time."""
        results: list[ToolResultData] = []
        for batch in self._batches(calls):
            results += await self._together(batch)
        return results

    async def refuse(self, calls: Sequence[ToolCallData], why: str) -> list[ToolResultData]:
        """An error result for each call, without running any."""
        return [await self._conclude(call, _error(why)) for call in calls]

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
        return await self._conclude(call, await self._output(call))

    async def _output(self, call: ToolCallData) -> ToolOutput:
        tool = self._tools.get(call.name)
        if tool is None:
            return _error(f"There is no tool {call.name!r}. There are: {', '.join(sorted(self._tools)) or 'none'}.")
        try:
            plan = tool.plan(parse_arguments(call.input), call.id)
            verdict = await self._approve(plan.ask)
            if verdict != "granted":
                return _error(_REFUSED[verdict])
            return await plan.run()
        except (BadArguments, ToolError) as error:
            return _error(str(error))

    async def _approve(self, ask: PermissionAsk) -> Verdict:
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        verdict = await self._events.approve(ask)
        # Calls that wait at the same time count twice; that errs on the side of patience.
        self.waited_seconds += loop.time() - asked_at
        return verdict

    async def _conclude(self, call: ToolCallData, output: ToolOutput) -> ToolResultData:
        """Make the result a fact, and the files it wrote with it."""
        for file in output.written:
            self._events.emit(FileWritten(file.path, file.content, file.before, file.encoding, file.before_encoding))
        result = ToolResultData(
            tool_call_id=call.id,
            name=call.name,
            content=shortened(output.content) or NO_OUTPUT,
            metadata=output.metadata,
            is_error=output.is_error,
            data=output.data,
            mime_type=output.mime_type,
        )
        await self._events.durable(MessageStart(self._new_message_id(), "tool", parts=[ToolResult(result)]))
        return result


def shortened(text: str) -> str:
    """The text, or its beginning and end with a note between: errors are mostly told at the end of an output."""
    limit = limits.TOOL_OUTPUT_CHARACTERS
    if len(text) <= limit:
        return text
    note = f"\n\n[... {len(text) - limit} or more characters left out here ...]\n\n"
    tail = (limit - len(note)) // 3
    head = limit - len(note) - tail
    return text[:head] + note + text[-tail:]


def _error(message: str) -> ToolOutput:
    return ToolOutput(content=message, is_error=True)
