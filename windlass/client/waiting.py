"""Waiting for a run to end, whether it ends now, ended long ago, or the server restarts in between."""

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.client.errors import ServerUnreachable
from windlass.client.events import StreamEvent
from windlass.wire.runs import Run, RunState, Usage

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle


class RunResult(msgspec.Struct, frozen=True):
    """How a run ended. `text` is the answer: what the last assistant message of the run says."""

    run_id: str
    session_id: str
    state: RunState
    text: str
    error: str
    usage: Usage
    cost: float

    @property
    def completed(self) -> bool:
        return self.state == "completed"


async def wait(workspace: "WorkspaceHandle", run_id: str, give_up_after: float | None) -> RunResult:
    """Return when the run is over. Raises NotFound for an unknown run, at once."""
    async with aclosing(workspace.events(give_up_after=give_up_after)) as events:
        async for event in events:
            if _ends(event, run_id):
                return await _result(workspace, await workspace.run(run_id), event.payload)
            # Only after the hello is every later end sure to be seen; so this is when to ask what happened before.
            # A reset says that the end may be among what is gone.
            if event.kind in ("hello", "reset"):
                run = await workspace.run(run_id)
                if run.is_terminal:
                    return await _result(workspace, run, {})
    raise ServerUnreachable("The stream ended before the run did.")


def _ends(event: StreamEvent, run_id: str) -> bool:
    return event.kind == "run_complete" and event.payload.get("run_id") == run_id


async def _result(workspace: "WorkspaceHandle", run: Run, complete: dict[str, Any]) -> RunResult:
    text = complete.get("text")
    return RunResult(
        run_id=run.id,
        session_id=run.session_id,
        state=run.state,
        text=text if isinstance(text, str) else await answer_of(workspace, run),
        error=run.error,
        usage=run.usage,
        cost=run.cost,
    )


async def answer_of(workspace: "WorkspaceHandle", run: Run) -> str:
    """The text of the run's last assistant message, read over REST."""
    own = frozenset(run.message_ids)
    for message in reversed(await workspace.messages(run.session_id)):
        if message.id in own and message.role == "assistant":
            return message.text
    return ""
