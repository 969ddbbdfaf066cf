"""A test's own workspace, clients and model calls on a server it shares with others, and how to read what it saw."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer, ReplyFunction
from windlass.testing.server_process import Api, Event, EventTap, ServerProcess, until

TERMINAL = ("completed", "canceled", "failed", "interrupted")


class Client(Api):
    """An Api with the requests of these tests by their names. Who sends them is said with each."""

    async def hang_up(self) -> None:
        """Close every connection but its streams, without a word."""
        await self.__aexit__()

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """A mutation that must succeed, in this client's name."""
        return await self.ok(method, f"{path}?client_id={self.client_id}", body)

    async def cancel(self, session_id: str) -> list[str]:
        run_ids: list[str] = (await self.send("POST", f"W/agent/sessions/{session_id}/cancel"))["canceled"]
        return run_ids

    async def cancel_run(self, run_id: str) -> tuple[int, Any]:
        return await self.call("POST", f"W/runs/{run_id}/cancel?client_id={self.client_id}")

    async def runs(self, session_id: str) -> list[dict[str, Any]]:
        """All runs of a session, in the order they were accepted."""
        answer: list[dict[str, Any]] = await self.ok("GET", f"W/runs?session={session_id}&limit=1000")
        return answer

    async def session(self, session_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = await self.ok("GET", f"W/sessions/{session_id}")
        return answer

    async def answer(self, permission: dict[str, Any], action: str) -> bool:
        """Answer a permission request; whether this answer decided it."""
        body = {"permission": permission, "action": action}
        return bool((await self.send("POST", "W/permissions/grant", body))["resolved"])

    async def permissions(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self.ok("GET", "W/permissions")
        return answer

    async def story(self, session_id: str) -> list[str]:
        return story(await self.messages(session_id))


class World:
    """A test's part of the server: its directory, its clients, its calls of the model."""

    def __init__(self, server: ServerProcess, model: ModelServer, directory: Path, stack: AsyncExitStack) -> None:
        self.server = server
        self.model = model
        self.directory = directory
        self._stack = stack
        self._clients: list[Client] = []

    async def client(self, **fields: Any) -> Client:
        """One more client that has opened the workspace."""
        client = await self._stack.enter_async_context(Client(self.server))
        self._clients.append(client)
        await client.open(self.directory, **fields)
        return client

    async def attached(self, *, deltas: bool = False, **fields: Any) -> tuple[Client, EventTap]:
        """One more client, with its event stream."""
        client = await self.client(**fields)
        return client, await self.tap(client, deltas=deltas)

    async def tap(self, client: Client, *, after: str | None = None, deltas: bool = False) -> EventTap:
        return await self._stack.enter_async_context(client.stream(after=after, deltas=deltas))

    async def call(self) -> ModelCall:
        """The next request to the model that comes from this test's workspace."""
        while True:
            call = await self.model.next_call()
            if self._is_ours(call.request):
                return call

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Everything the model was asked for this workspace."""
        return [request for request in self.model.requests if self._is_ours(request)]

    def _is_ours(self, request: dict[str, Any]) -> bool:
        return f"directory {self.directory}." in request["messages"][0]["content"]

    def auto(self, reply: ReplyFunction) -> None:
        self.model.auto(reply)

    async def tidy(self) -> None:
        """End what still runs, and say goodbye: the next test finds the server as this one did."""
        self.model.auto(None)
        client = await self.client()
        for session in await client.ok("GET", "W/sessions"):
            await client.cancel(session["id"])

        async def is_quiet() -> bool:
            return not (await client.ok("GET", "W/agent"))["is_busy"]

        await until(is_quiet, "the test's runs are over")
        for gone in self._clients:
            await client.call("DELETE", f"/v1/clients/{gone.client_id}")
        self.model.hang_up()


def text_of(message: dict[str, Any]) -> str:
    return "".join(part["data"]["text"] for part in message["parts"] if part["type"] == "text")


def finish_of(message: dict[str, Any]) -> str:
    """The reason a message ended with, "" while it is being written."""
    return next((str(part["data"]["reason"]) for part in message["parts"] if part["type"] == "finish"), "")


def story(messages: Iterable[dict[str, Any]]) -> list[str]:
    """A conversation as lines: `user: hello`, `assistant: Hi [end_turn]`, `assistant: <bash> [tool_use]`."""
    return [_line(message) for message in messages]


def _line(message: dict[str, Any]) -> str:
    words = [text_of(message)]
    for part in message["parts"]:
        data = part["data"]
        match part["type"]:
            case "tool_call":
                words.append(f"<{data['name']}>")
            case "tool_result":
                words.append("error" if data["is_error"] else "ok")
            case "finish":
                words.append(f"[{data['reason']}]")
    return f"{message['role']}: {' '.join(word for word in words if word)}"


def in_state(run_id: str, state: str) -> Any:
    """Matches the event that says so."""
    return lambda event: event.body["id"] == run_id and event.body["state"] == state


def of_run(tap: EventTap, run_id: str) -> list[Event]:
    """Every event that belongs to a run: its states, its messages, its end."""
    message_ids: set[str] = set()
    for event in tap.events:
        if event.kind == "run" and event.body["id"] == run_id:
            message_ids |= set(event.body["message_ids"])
    return [event for event in tap.events if _belongs(event, run_id, message_ids)]


def _belongs(event: Event, run_id: str, message_ids: set[str]) -> bool:
    match event.kind:
        case "run":
            return bool(event.body["id"] == run_id)
        case "run_complete" | "agent_event" | "permission_request":
            return bool(event.body["run_id"] == run_id)
        case "message":
            return event.body["id"] in message_ids
        case _:
            return False


async def together(*requests: Any) -> list[Any]:
    """Send all of them at the same moment."""
    return list(await asyncio.gather(*requests))
