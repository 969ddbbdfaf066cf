"""Being an approver: every permission that waits is decided once, by a function."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from windlass.client.events import StreamEvent
from windlass.client.stream import PASSING
from windlass.client.transport import backoff
from windlass.wire.events import Hello
from windlass.wire.permissions import Action, PermissionNotification, PermissionRequest

if TYPE_CHECKING:
    from windlass.client.workspace import WorkspaceHandle

Decision = Action | None
Decide = Callable[[PermissionRequest], Decision | Awaitable[Decision]]


class Approver:
    """Follows the workspace and asks `decide`, one request at a time, the oldest first.

    A request that somebody else settles meanwhile is dropped; a `decide` that still waits (for a person) is cancelled.
    """

    def __init__(self, workspace: "WorkspaceHandle", decide: Decide) -> None:
        self._workspace = workspace
        self._decide = decide
        self._undecided: dict[str, PermissionRequest] = {}  # oldest first; the server bounds how many can wait
        self._decided: set[str] = set()  # or being decided; kept until nobody asks any more, so that each is asked once
        self._deciding: tuple[str, asyncio.Future[Decision]] | None = None
        self._head = 0  # facts up to here are history, which `hello` has summed up
        self._news = asyncio.Event()

    async def serve(self) -> None:
        """Answer until cancelled. Raises what `decide` raises, and what the server refuses for good."""
        tasks = {asyncio.create_task(self._follow()), asyncio.create_task(self._answer())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- what the stream says --

    async def _follow(self) -> None:
        while True:
            async with aclosing(self._workspace.events()) as events:
                async for event in events:
                    self._take(event)
                    self._news.set()
                    if event.kind == "reset":
                        break  # what was asked may be among what is gone: the next `hello` has all that waits

    def _take(self, event: StreamEvent) -> None:
        match event.decoded:
            case Hello() as hello:
                self._head = hello.head
                pending = {request.id: request for request in hello.permissions}
                for request_id in {*self._undecided, *self._decided} - pending.keys():
                    self._forget(request_id)  # settled while there was no connection
                for request in pending.values():
                    self._add(request)
            case PermissionRequest() as request if event.id is not None and event.id.seq > self._head:
                self._add(request)
            case PermissionNotification() as notification if notification.outcome != "asked":
                self._forget(notification.id)

    def _add(self, request: PermissionRequest) -> None:
        if request.id not in self._decided:
            self._undecided.setdefault(request.id, request)

    def _forget(self, request_id: str) -> None:
        self._undecided.pop(request_id, None)
        self._decided.discard(request_id)
        if self._deciding is not None and self._deciding[0] == request_id:
            self._deciding[1].cancel()

    # -- what is answered --

    async def _answer(self) -> None:
        while True:
            while not self._undecided:
                self._news.clear()
                await self._news.wait()
            request = self._undecided.pop(next(iter(self._undecided)))
            self._decided.add(request.id)
            decision = self._decide(request)
            action = await self._awaited(request.id, decision) if inspect.isawaitable(decision) else decision
            if action is not None:
                await self._grant(request.id, action)

    async def _awaited(self, request_id: str, decision: Awaitable[Decision]) -> Decision:
        deciding = asyncio.ensure_future(decision)
        self._deciding = request_id, deciding
        try:
            await asyncio.wait({deciding})
        finally:
            self._deciding = None
            deciding.cancel()
            await asyncio.gather(deciding, return_exceptions=True)
        return None if deciding.cancelled() else deciding.result()

    async def _grant(self, request_id: str, action: Action) -> None:
        """Answer until the answer got through, or is not wanted any more. A second one is told that it came late."""
        attempt = 0
        while request_id in self._decided:
            try:
                await self._workspace.grant(request_id, action)
                return
            except PASSING:
                await asyncio.sleep(backoff(attempt))
                attempt += 1
