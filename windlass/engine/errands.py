"""What people ask of a session beside prompts, and wait for: to sum the conversation up, to run a command.

Each is a run in the session's lane like any other: in order, cancellable, on disk before it starts, with one ending.
Whoever asked may go away; the run goes on.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from windlass.engine.drafts import is_whole_summary
from windlass.errors import Conflict, JournalPoisoned, Unavailable, WindlassError
from windlass.journal import view
from windlass.wire.execution import COMMAND_MARK
from windlass.wire.http import ShellOutput, Summarized
from windlass.wire.messages import Message, ShellCommand
from windlass.wire.permissions import By
from windlass.wire.runs import Run

if TYPE_CHECKING:
    from windlass.engine.workspace import Workspace

SUMMARIZE = "Sum up the conversation so far."
_decode_message = msgspec.json.Decoder(Message).decode


class Errands:
    """The errands of one workspace, and those who wait for them."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self._waiters: dict[str, asyncio.Future[None]] = {}  # by run

    async def summarize(self, session_id: str, by: By) -> Summarized:
        """Replace what the model is sent of the conversation by a summary of it; returns when that is on disk."""
        run = await self._ended(await self._accepted(partial(self._accept_summary, session_id, by)))
        for message in await self._messages(run):
            if is_whole_summary(message):
                return Summarized(run.id, message.id, message.text)
        raise Conflict(
            "The run ended without a whole summary. Look at its messages for what went wrong, then repeat it."
        )

    def _accept_summary(self, session_id: str, by: By) -> str:
        workspace = self._workspace
        if not workspace.sessions.get(session_id).message_count and not workspace.is_session_busy(session_id):
            raise Conflict("There is nothing to sum up yet. Send a prompt first.")
        return workspace.accept_errand(session_id, SUMMARIZE, "summarize", by)

    async def shell(self, session_id: str, command: str, term_width: int, by: By) -> ShellOutput:
        """Run a person's own command in the workspace's directory; what it printed, when it has ended."""
        text = COMMAND_MARK + command
        accept = partial(self._workspace.accept_errand, session_id, text, "shell", by, term_width)
        run = await self._ended(await self._accepted(accept))
        for message in await self._messages(run):
            for part in message.parts:
                if isinstance(part, ShellCommand):
                    return ShellOutput(part.data.output, part.data.exit_code)
        raise Conflict("The run ended without having run the command. Look at its messages for what went wrong.")

    async def _accepted(self, accept: Callable[[], str]) -> str:
        """Its run. Nothing is awaited once it is accepted: whoever waits for its end must not come after it."""
        try:
            return accept()
        except WindlassError:
            await self._workspace.log.durable(self._workspace.log.head)  # what it is refused for must be on disk
            raise

    async def _ended(self, run_id: str) -> Run:
        """Wait for the run's end, and raise unless it completed."""
        waiter = self._waiters[run_id] = asyncio.get_running_loop().create_future()
        try:
            await waiter
        finally:
            self._waiters.pop(run_id, None)
        await self._workspace.log.durable(self._workspace.log.head)
        run = await self._workspace.run(run_id)
        match run.state:
            case "completed":
                return run
            case "canceled":
                raise Conflict("It was cancelled before it was done.")
            case "interrupted":
                raise Unavailable(run.error)
            case _:
                raise Conflict(run.error)

    async def _messages(self, run: Run) -> list[Message]:
        """Its messages, the newest first."""
        rows = [await self._workspace.read(view.message, self._workspace.id, id) for id in reversed(run.message_ids)]
        return [_decode_message(row.body) for row in rows if row is not None]

    # -- how they hear of it ------------------------------------------------------------------------------------------

    def ended(self, run_id: str) -> None:
        """A run is over; its end is on its way to the disk."""
        waiter = self._waiters.pop(run_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def give_up(self) -> None:
        """The journal is poisoned: no run ends any more."""
        self._fail(self._workspace.context.journal.poisoned or JournalPoisoned("The journal could not be written."))

    def close(self) -> None:
        """What still waits in its lane is found by the next start; nobody can be told of it here."""
        self._fail(Unavailable("This server is leaving. Start it again, then look whether it was done."))

    def _fail(self, error: Unavailable) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            if not waiter.done():
                waiter.set_exception(error)
