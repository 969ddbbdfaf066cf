"""A run as a client holds it: how it stands, what it says, how it ends.

```python
run = await workspace.prompt(session.id, "What is in this directory?")
async for text in run.text():
    print(text, end="", flush=True)
result = (await run.result()).raise_for_state()
```
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from windlass.client import run_events
from windlass.client.answer_text import AnswerText
from windlass.client.errors import RunFailed
from windlass.client.events import EventId, StreamEvent
from windlass.client.waiting import RunResult
from windlass.wire.http import Accepted
from windlass.wire.runs import TERMINAL_STATES, Disposition, Run, RunState

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle


class RunHandle:
    """Made by `WorkspaceHandle.prompt`, when the server has the prompt on disk, and by `find_run`.

    The run is the server's: it goes on when this program ends, and whatever is awaited here can be left and begun again
    without touching it. `state` is the newest that this handle has heard of; `refresh` asks.
    """

    def __init__(self, workspace: "WorkspaceHandle", accepted: Accepted) -> None:
        self.workspace = workspace
        self.id = accepted.run_id
        self.session_id = accepted.session_id
        self.state: RunState = accepted.state
        self.disposition: Disposition = accepted.disposition
        """Whether it started, was queued behind others, or steers the run `into`."""
        self.position = accepted.position
        """How many runs were ahead of it when it was accepted."""
        self.into = accepted.into
        self._after = EventId.parse(accepted.after) if accepted.after else None

    def __repr__(self) -> str:
        return f"RunHandle(id={self.id!r}, session_id={self.session_id!r}, state={self.state!r})"

    @property
    def run_id(self) -> str:
        return self.id

    @property
    def is_over(self) -> bool:
        """Whether this handle has heard that the run ended, in whichever way."""
        return self.state in TERMINAL_STATES

    def raise_for_state(self) -> "RunHandle":
        """Itself, to be chained. Raises RunFailed if the run is known to have ended other than completed."""
        if self.is_over and self.state != "completed":
            raise RunFailed(self.id, self.state)
        return self

    async def refresh(self) -> Run:
        """The run as the server has it now."""
        run = await self.workspace.run(self.id)
        self.state = run.state
        return run

    async def result(self, timeout: float | None = None) -> RunResult:
        """How the run ended, when it has: also if it ended before, and over restarts of the server.

        Raises TimeoutError after `timeout` seconds; the run goes on. It does not raise for a run that failed: look at
        the result's `state`, or chain `raise_for_state()`.
        """
        async with asyncio.timeout(timeout):
            result = await self.workspace.wait(self.id)
        self.state = result.state
        return result

    async def cancel(self) -> RunState:
        """Cancel this run and no other; returns the state it is in. One that is over stays as it is."""
        self.state = await self.workspace.cancel_run(self.id)
        return self.state

    async def events(self, deltas: bool = False) -> AsyncGenerator[StreamEvent, None]:
        """The run's own events, from its start to its `run_complete`, also when begun late: its states, messages,
        files, permissions and questions. Those of agents it started are on `WorkspaceHandle.events`.

        It begins with the oldest fact of the run that the log still has. A `reset` says that facts are gone, and it
        ends without a `run_complete` when that is among them: `result` knows the end all the same. Each loop has a
        connection of its own; leave one early with `contextlib.aclosing` around it.
        """
        events = run_events.of_run(self.workspace, self.id, self.session_id, self._after, deltas)
        async with aclosing(events):
            async for event in events:
                if event.kind == "run" and isinstance(run := event.decoded, Run):
                    self.state = run.state
                yield event

    async def text(self) -> AsyncGenerator[str, None]:
        """What the run says, in pieces as they come, each character once; ends when the run does.

        Joined, the pieces are the texts of its assistant messages, with an empty line between two of them; the last of
        them is `RunResult.text`.
        """
        answer = AnswerText(self.session_id)
        complete = False
        async with aclosing(self.events(deltas=True)) as events:
            async for event in events:
                complete = complete or event.kind == "run_complete"
                if piece := answer.take(event):
                    yield piece
        if not complete:
            # The end, and perhaps more, is gone from the log: what was said is still in the conversation.
            own = frozenset((await self.refresh()).message_ids)
            for message in await self.workspace.messages(self.session_id):
                if message.id in own and (piece := answer.take_message(message)):
                    yield piece
