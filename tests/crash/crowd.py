"""The clients of the crash suite. Each notes what it sends before it sends it, and what it was told after."""

import asyncio
import contextlib
import random
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import aiohttp

from windlass.testing.server_process import Api, Event, EventTap, ServerProcess

from .told import SentAnswer, SentCancel, SentPrompt, Told, Watched

_WISHES = ["say", "say", "echo", "two", "ask", "ask", "sleep", "fail"]
_ON_BUSY = ["enqueue", "enqueue", "enqueue", "enqueue", "steer", "interrupt"]
_SESSIONS = 3


class Crowd:
    """The clients of one workspace. They live through every crash; `work` lasts as long as one life of the server."""

    def __init__(self, name: str, server: ServerProcess, directory: Path, told: Told, dice: random.Random) -> None:
        self.name = name
        self.told = told
        self.api = Api(server)
        self._directory = directory
        self._dice = dice
        self._sessions: list[str] = []
        self._numbers = 0
        self.watchers = [Watcher(self, Api(server), deltas) for deltas in (False, True)]

    async def aclose(self) -> None:
        for api in (self.api, *(watcher.api for watcher in self.watchers)):
            await api.__aexit__()

    async def work(self) -> None:
        """Work until the server is gone, or until cancelled."""
        with _until_it_is_gone():
            await self._join()
            await self._send_again()
            jobs = [self._prompt_on(session) for session in self._sessions]
            await _together(*jobs, self._cancel(), *(watcher.watch() for watcher in self.watchers))

    async def settle(self) -> None:
        """Watch and answer, but ask for nothing new."""
        with _until_it_is_gone():
            await self._join()
            await self._send_again()
            await _together(*(watcher.watch() for watcher in self.watchers))

    async def _join(self) -> None:
        """Open the workspace, and its sessions the first time."""
        for api in (self.api, *(watcher.api for watcher in self.watchers)):
            api.token = api.server.token  # made by the first start
        body = {"path": str(self._directory), "client_id": self.api.client_id}
        self.api.workspace_id = (await self._told_yes("POST", "/v1/workspaces", body))["id"]
        for watcher in self.watchers:
            watcher.api.workspace_id = self.api.workspace_id
        while len(self._sessions) < _SESSIONS:
            title = f"session {len(self._sessions)}"
            self._sessions.append((await self._told_yes("POST", "W/sessions", {"title": title}))["id"])

    async def _told_yes(self, method: str, path: str, body: Any) -> Any:
        status, answer = await self.api.call(method, path, body)
        if status in (404, 503):
            raise aiohttp.ClientConnectionError("the server is leaving")
        assert 200 <= status < 300, f"{method} {path}: {status} {answer}"
        return answer

    # -- prompts ------------------------------------------------------------------------------------------------------

    async def _prompt_on(self, session: str) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(0.0, 0.4))
            self._numbers += 1
            run_id = f"{self.name}-{self._numbers}"
            wish = f"{self._dice.choice(_WISHES)} #{run_id}"
            body = {
                "session_id": session,
                "prompt": f"Please {wish}",
                "run_id": run_id,
                "on_busy": self._dice.choice(_ON_BUSY),
            }
            prompt = self.told.prompts[run_id] = SentPrompt(self.name, body)
            await self._send(prompt)

    async def _send(self, prompt: SentPrompt) -> None:
        prompt.times_sent += 1
        prompt.answers.append(await self.api.call("POST", f"W/agent?client_id={self.api.client_id}", prompt.body))
        self.told.answered()

    async def _send_again(self) -> None:
        """What was never answered is sent again, and now and then also what was: it must be the same run (I8)."""
        for prompt in [p for p in self.told.prompts.values() if p.workspace == self.name]:
            unanswered = len(prompt.answers) < prompt.times_sent and not prompt.accepted
            if unanswered or (prompt.accepted and self._dice.random() < 0.02):
                self.told.counts["prompts sent again"] += 1
                await self._send(prompt)

    # -- cancels ------------------------------------------------------------------------------------------------------

    async def _cancel(self) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(0.1, 0.8))
            mine = [p.run_id for p in self.told.prompts.values() if p.workspace == self.name and p.accepted]
            if self._dice.random() < 0.4 or not mine:
                cancel = SentCancel(self.name, "session", self._dice.choice(self._sessions))
                path = f"W/agent/sessions/{cancel.target}/cancel"
            else:
                cancel = SentCancel(self.name, "run", self._dice.choice(mine[-10:]))
                path = f"W/runs/{cancel.target}/cancel"
            self.told.cancels.append(cancel)
            cancel.status, cancel.answer = await self.api.call("POST", path)
            self.told.answered()

    # -- permissions --------------------------------------------------------------------------------------------------

    async def answer(self, api: Api, permission: dict[str, Any]) -> None:
        action = self._dice.choice(["allow", "allow", "allow_session", "deny"])
        answer = SentAnswer(self.name, permission["id"], action)
        self.told.answers.append(answer)
        body = {"permission": {"id": permission["id"]}, "action": action}
        status, told = await api.call("POST", f"W/permissions/grant?client_id={api.client_id}", body)
        if status == 200:
            answer.resolved = told["resolved"]
            self.told.answered()


class Watcher:
    """A client that follows the stream, comes back with the last id it has, and answers what is asked."""

    def __init__(self, crowd: Crowd, api: Api, deltas: bool) -> None:
        self.api = api
        self._crowd = crowd
        self._deltas = deltas
        self._tap: EventTap | None = None
        self._watched = Watched(crowd.name, "deltas" if deltas else "whole messages")
        crowd.told.watched.append(self._watched)

    @property
    def position(self) -> int:
        """The number of the newest fact it has."""
        facts = [*self._watched.facts[-1:], *(self._tap.facts[-1:] if self._tap else ())]
        return facts[-1].seq if facts else 0

    async def watch(self) -> None:
        facts = self._watched.facts
        self._tap = tap = self.api.stream(last_event_id=facts[-1].id if facts else None, after="0", deltas=self._deltas)
        try:
            async with tap:
                self._watched.connections += 1
                await self._follow(tap)
        except AssertionError:
            if tap.status == 200:
                raise
            raise aiohttp.ClientConnectionError("the stream did not begin") from None
        finally:
            self._tap = None
            facts += tap.facts
            self._watched.resets += sum(event.kind == "reset" for event in tap.events)

    async def _follow(self, tap: EventTap) -> None:
        """Answer every question once, also those that were open when the stream began."""
        seen = 0
        async with asyncio.TaskGroup() as group:
            while not tap.over:
                events, seen = tap.events[seen:], len(tap.events)
                for event in events:
                    for permission in _questions(event):
                        group.create_task(self._crowd.answer(self.api, permission))
                await asyncio.sleep(0.01)
        raise aiohttp.ClientConnectionError("the stream ended")


def _questions(event: Event) -> list[dict[str, Any]]:
    if event.kind == "hello":
        return list(event.body["permissions"])
    return [event.body] if event.kind == "permission_request" else []


@contextlib.contextmanager
def _until_it_is_gone() -> Iterator[None]:
    """A server that is gone is how every life of it ends; anything else is an error."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError):
        pass
    except BaseExceptionGroup as failures:
        _, others = failures.split((aiohttp.ClientError, TimeoutError, asyncio.CancelledError))
        if others is not None:
            raise others from None


async def _together(*jobs: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(job)
