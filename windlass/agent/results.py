"""The message of one tool result: shown while the tool works, whole and durable at its end."""

from collections.abc import Callable

from windlass import limits
from windlass.agent.history import NO_OUTPUT
from windlass.wire.execution import Events
from windlass.wire.messages import ToolCallData, ToolResult, ToolResultData
from windlass.wire.run_events import Delta, FileWritten, MessageStart, ToolEnded
from windlass.wire.tools import ToolOutput


class ResultMessage:
    """Announced with the first text that is shown, or whole at once if none is."""

    def __init__(self, call: ToolCallData, events: Events, new_message_id: Callable[[], str]) -> None:
        self._call = call
        self._events = events
        self._new_message_id = new_message_id
        self._message_id = ""
        self._shown = 0
        self._ended = False

    def show(self, text: str) -> None:
        """Let people see more of the output. Nothing is taken any more when the result is there."""
        text = text[: limits.SHOWN_OUTPUT_CHARACTERS - self._shown]
        if self._ended or not text:
            return
        self._shown += len(text)
        if self._message_id:
            self._events.emit(Delta(self._message_id, 0, "content", text))
            return
        self._message_id = self._new_message_id()
        self._events.emit(MessageStart(self._message_id, "tool"))
        self._events.emit(
            Delta(
                self._message_id,
                0,
                "content",
                text,
                part_type="tool_result",
                id=self._call.id,
                name=self._call.name,
            )
        )

    async def conclude(self, output: ToolOutput) -> ToolResultData:
        """Make the result a fact, and the files it wrote with it."""
        self._ended = True
        for file in output.written:
            kept = (file.content, file.before, file.encoding, file.before_encoding)
            self._events.emit(FileWritten(file.path, *kept, file.digest, file.before_digest))
        result = ToolResultData(
            tool_call_id=self._call.id,
            name=self._call.name,
            content=shortened(output.content) or NO_OUTPUT,
            metadata=output.metadata,
            is_error=output.is_error,
            data=output.data,
            mime_type=output.mime_type,
        )
        if self._message_id:
            await self._events.durable(ToolEnded(self._message_id, ToolResult(result)))
        else:
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
