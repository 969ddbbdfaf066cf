"""What a worker waits for an answer to: approvals, and requests about its agents. Each has a task of its own."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

from windlass import limits
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.wire.execution import PermissionAsk
from windlass.wire.frames import ApprovalBody, ApprovalRequest

_APPROVAL_ID = re.compile(r"sa-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Asks:
    """A worker may ask many things at once and take them back; it may not ask without bound, or twice by one id."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._used: set[str] = set()

    @property
    def pending(self) -> int:
        return len(self._tasks)

    def begin(self, id: str, answering: Coroutine[Any, Any, None]) -> None:
        """Answer in the background. Raises ProtocolError, and then nothing was begun."""
        try:
            self._check(id)
        except ProtocolError:
            answering.close()
            raise
        self._used.add(id)
        task = self._tasks[id] = asyncio.create_task(answering, name=f"answer {id}")
        task.add_done_callback(lambda _: self._tasks.pop(id, None))

    def _check(self, id: str) -> None:
        if not 0 < len(id) <= limits.ID_CHARACTERS:
            raise ProtocolError("a request whose id is empty or too long")
        if id in self._used:
            raise ProtocolError(f"the id {id} was used for two requests")
        if len(self._tasks) >= limits.LINK_PENDING_ASKS:
            raise ProtocolError(f"more than {limits.LINK_PENDING_ASKS} requests at once")
        if len(self._used) >= limits.LINK_ASKS_PER_RUN:
            raise ProtocolError(f"more than {limits.LINK_ASKS_PER_RUN} requests in one run")

    def withdraw(self, id: str) -> None:
        """Nobody waits for that answer any more. One that was just given, or is unknown, is no error: it is a race."""
        task = self._tasks.get(id)
        if task is not None:
            task.cancel()

    async def end(self) -> None:
        """Take everything back, and return when nobody is asked any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def check_approval(frame: ApprovalRequest, size: int) -> None:
    """An id that could be guessed, or a question nobody could be shown, is not one of ours (B55)."""
    if _APPROVAL_ID.fullmatch(frame.id) is None:
        raise ProtocolError("an approval request whose id is not sa- and a UUID")
    if size > limits.LINK_APPROVAL_BYTES:
        raise ProtocolError(f"an approval request of over {limits.LINK_APPROVAL_BYTES} bytes")


def permission_ask(body: ApprovalBody) -> PermissionAsk:
    """The question as people and policy see it. The resource is the exact thing; a path may say where it is."""
    return PermissionAsk(
        tool_call_id=body.tool_call_id,
        tool_name=body.tool_name,
        action=body.permission_type,
        description=body.question,
        path=body.path or body.resource,
        resource=body.resource,
        params=body.params,
        confined=body.confined,
        read_only=body.read_only,
    )
