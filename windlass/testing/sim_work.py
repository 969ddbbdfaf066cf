"""What runs of half of the simulated worlds do beside answering: results that stream, files they write, summaries.

It has a chance of its own: in the other half, seeds that found something once still find it.
"""

import asyncio
import random
from collections.abc import Callable

import msgspec

from windlass.testing.sim_world import World
from windlass.wire.execution import Events, RunSpec
from windlass.wire.messages import ToolCallData, ToolResult, ToolResultData
from windlass.wire.run_events import Delta, FileWritten, MessageEnd, MessageStart, TitleSuggested, ToolEnded
from windlass.wire.tools import ToolError

_PAUSES = (0.0, 0.0, 0.01, 0.01, 0.02, 0.05)
_LINES = ("ok\n", "warning: é\n", "日本\n", "built\n")
_NAMES = ("main.py", "notes.md")


class SimWork:
    """The work of one run. `note` tells the history that a model was called."""

    def __init__(self, world: World, spec: RunSpec, events: Events, note: Callable[[], None]) -> None:
        self._world = world
        self._spec = spec
        self._events = events
        self._note = note
        self._rng = random.Random(f"{world.seed} {spec.run_id} {world.history.life} work")

    def begin(self) -> None:
        if self._spec.wants_title and self._rng.random() < 0.7:
            self._events.emit(TitleSuggested("about ropes"))

    def write(self) -> None:
        """Change a file, and mostly know what it was before."""
        path = f"{self._spec.workspace_path}/{self._rng.choice(_NAMES)}"
        was = self._world.files.get(path)
        now = self._world.new_id("content")
        self._world.files[path] = now.encode()
        self._world.writers.append((self._spec.session_id, self._spec.run_id))
        if self._rng.random() < 0.1:
            self._events.emit(FileWritten(path, now))
        else:
            self._events.emit(FileWritten(path, now, None if was is None else was.decode()))

    async def result(self, call: ToolCallData, content: str, is_error: bool) -> None:
        """The result of a call: whole, or streamed; then it is what was streamed, or more, or something else."""
        id = self._world.new_id("msg")
        data = ToolResultData(call.id, call.name, content, "", is_error)
        if self._rng.random() < 0.4:
            await self._events.durable(MessageStart(id, "tool", parts=[ToolResult(data)]))
            return
        self._events.emit(MessageStart(id, "tool"))
        await self._pause()
        shown = ""
        for number in range(self._rng.choice((0, 1, 3, 6))):
            line = self._rng.choice(_LINES)
            if number:
                self._events.emit(Delta(id, 0, "content", line))
            else:
                self._events.emit(Delta(id, 0, "content", line, "tool_result", call.id, call.name))
            shown += line
            await self._pause()
        said = self._rng.choice((shown, shown + content, content))
        await self._events.durable(ToolEnded(id, ToolResult(msgspec.structs.replace(data, content=said))))

    async def sum_up(self) -> None:
        """Stand in for everything before it; now and then it is cut off, and then stands for nothing."""
        self._note()
        id = self._world.new_id("msg")
        self._events.emit(MessageStart(id, "assistant", "model", "simulated", is_summary=True))
        for number in range(self._rng.choice((1, 2, 4))):
            self._events.emit(Delta(id, 0, "text", "in short ", "" if number else "text"))
            await self._pause()
        await self._events.durable(MessageEnd(id, self._rng.choice(("end_turn", "end_turn", "max_tokens"))))

    @property
    def ends_with_a_summary(self) -> bool:
        return self._rng.random() < 0.15

    async def _pause(self) -> None:
        await asyncio.sleep(self._rng.choice(_PAUSES))


class SimRoot:
    """A directory whose files are in the world's memory: it outlives server processes, as a disk does."""

    def __init__(self, world: World, path: str) -> None:
        self._files = world.files
        self._path = path

    def relative(self, path: str) -> str:
        if not path.startswith(f"{self._path}/"):
            raise ToolError(f"{path} is outside the workspace.")
        return path.removeprefix(f"{self._path}/")

    def read_if_exists(self, path: str, limit: int) -> bytes | None:
        return self._files.get(f"{self._path}/{path}")

    def replace_bytes(self, path: str, before: bytes | None, content: bytes | None) -> None:
        if self.read_if_exists(path, 0) != before:
            raise ToolError(f"{path} has changed.")
        if content is None:
            del self._files[f"{self._path}/{path}"]
        else:
            self._files[f"{self._path}/{path}"] = content

    def close(self) -> None:
        pass
