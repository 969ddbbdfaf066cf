"""A small server that speaks the HTTP contract on a real socket, and misbehaves when a test asks it to.

It keeps one workspace in memory. What it is for: drops, refusals, silence and gaps at an exact moment, which a real
server does not do on request. That the client and the real server agree is shown by the end-to-end tests.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

TOKEN = "a-token-for-tests"
EPOCH = "e0e0e0e0e0e0e0e0"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeWindlass:
    def __init__(self) -> None:
        self.url = ""
        self.epoch = EPOCH
        self.facts: list[str] = []  # encoded when they happen: what is stored does not change later
        self.is_open = True
        self.creates = 0
        self.sessions: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.pending: list[dict[str, Any]] = []
        self.batches: list[dict[str, Any]] = []  # of questions that wait
        self.answers: list[dict[str, Any]] = []  # bodies of answers, and of cancels
        self.requests: list[tuple[str, str]] = []  # method, path with query
        self.stream_headers: list[dict[str, str]] = []
        self.prompts: list[dict[str, Any]] = []
        self.grants: list[tuple[str, str]] = []
        self.patterns: list[str] = []  # typed with those
        self.resolved = True
        self.refusals: list[tuple[str, web.Response | None]] = []  # path ending, answer (None: the connection breaks)
        self.on_prompt: Callable[[dict[str, Any]], None] = lambda prompt: None
        self.accepts = asyncio.Event()  # a prompt waits for this before anything becomes of it
        self.accepts.set()
        self.on_cancel: Callable[[str], None] = lambda run_id: None
        self.silent = False
        self.greets = True
        self.skip: set[int] = set()  # facts left out of the stream, to make a gap
        self._streams: set[Stream] = set()
        self.attached = asyncio.Event()
        self.answered: list[str] = []  # paths
        self.answer_went = asyncio.Event()

    # -- what a test makes happen --

    def fact(self, kind: str, change: str, payload: dict[str, Any], by: dict[str, str] | None = None) -> None:
        envelope = {"type": kind, "payload": {"type": change, "payload": payload}, "time": "2026-01-01T00:00:00Z"}
        self.facts.append(json.dumps({**envelope, "by": by or {"name": "tester"}}))
        for stream in self._streams:
            stream.wake.set()

    def live(self, kind: str, payload: dict[str, Any]) -> None:
        """An event that is no fact."""
        data = json.dumps({"type": kind, "payload": {"type": "updated", "payload": payload}})
        for stream in self._streams:
            stream.extra.append((len(self.facts), f"data: {data}\n\n"))
            stream.wake.set()

    def drop_streams(self) -> None:
        self.attached.clear()
        for stream in list(self._streams):
            stream.ended = True
            stream.wake.set()

    def refuse(self, path_ending: str, answer: web.Response | None) -> None:
        """The next request whose path ends so gets this answer, once."""
        self.refusals.append((path_ending, answer))

    async def asked_for(self, path_ending: str) -> None:
        """Return when a request whose path ends so has been answered."""
        async with asyncio.timeout(10):
            while not any(path.endswith(path_ending) for path in self.answered):
                self.answer_went.clear()
                await self.answer_went.wait()

    def add_session(self, session_id: str, title: str = "", updated_at: int = 0) -> None:
        self.sessions[session_id] = {"id": session_id, "title": title, "updated_at": updated_at}
        self.messages[session_id] = []

    def message(self, session_id: str, message: dict[str, Any], change: str = "updated") -> None:
        """A message as a fact, also seen over REST."""
        known = self.messages.setdefault(session_id, [])
        known[:] = [other for other in known if other["id"] != message["id"]] + [message]
        self.fact("message", change, message)

    def run_state(self, run_id: str, state: str, **more: Any) -> None:
        change = "updated" if self.runs[run_id]["state"] != "new" else "created"
        self.runs[run_id] |= {"state": state, **more}
        self.fact("run", change, self.runs[run_id])

    def finish(self, run_id: str, state: str = "completed", **more: Any) -> None:
        self.run_state(run_id, state, **({"error": more["error"]} if "error" in more else {}))
        session_id = self.runs[run_id]["session_id"]
        self.fact("run_complete", "created", {"session_id": session_id, "run_id": run_id, "message_id": "m", **more})

    def active(self) -> list[dict[str, Any]]:
        over = ("completed", "canceled", "failed", "interrupted")
        return [run for run in self.runs.values() if run["state"] not in over]

    # -- the server --

    @asynccontextmanager
    async def serve(self, socket_path: Path | None = None) -> AsyncIterator["FakeWindlass"]:
        runner = web.AppRunner(self._app(), shutdown_timeout=0.1)
        await runner.setup()
        if socket_path is not None:
            await web.UnixSite(runner, str(socket_path)).start()
            self.url = f"unix:{socket_path}"
        else:
            await web.TCPSite(runner, "127.0.0.1", self._port()).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.drop_streams()
            await runner.cleanup()

    def _port(self) -> int:
        """Free at first; the same again when a test serves a second time (a restart)."""
        return int(self.url.rpartition(":")[2]) if self.url else 0

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._door])
        w = "/v1/workspaces/{id}"
        app.router.add_get("/v1/health", _empty)
        app.router.add_get("/v1/version", _version)
        app.router.add_get("/v1/workspaces", self._list)
        app.router.add_post("/v1/workspaces", self._create)
        app.router.add_get(w, self._workspace)
        app.router.add_delete(w, _empty)
        app.router.add_delete("/v1/clients/{id}", _empty)
        app.router.add_post(w + "/current-session", _empty)
        app.router.add_get(w + "/sessions", self._get_sessions)
        app.router.add_post(w + "/sessions", self._post_session)
        app.router.add_get(w + "/sessions/{sid}", self._session)
        app.router.add_put(w + "/sessions/{sid}", self._session)
        app.router.add_delete(w + "/sessions/{sid}", self._session)
        app.router.add_get(w + "/sessions/{sid}/messages", self._get_messages)
        app.router.add_post(w + "/agent", self._prompt)
        app.router.add_post(w + "/agent/sessions/{sid}/cancel", self._cancel)
        app.router.add_get(w + "/agent/sessions/{sid}/prompts/list", self._queue)
        app.router.add_get(w + "/runs", self._get_runs)
        app.router.add_get(w + "/runs/{rid}", self._run)
        app.router.add_post(w + "/runs/{rid}/cancel", self._cancel_run)
        app.router.add_get(w + "/permissions", self._permissions)
        app.router.add_post(w + "/permissions/grant", self._grant)
        app.router.add_get(w + "/questions", self._questions)
        app.router.add_post(w + "/questions/answer", self._answer)
        app.router.add_post(w + "/questions/cancel", self._answer)
        app.router.add_get(w + "/events", self._events)
        return app

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await self._admit(request, handler)
        finally:
            self.answered.append(request.path)
            self.answer_went.set()

    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        for index, (ending, answer) in enumerate(self.refusals):
            if request.path.endswith(ending):
                del self.refusals[index]
                if answer is None:
                    assert request.transport is not None
                    request.transport.abort()
                    return web.Response()
                return answer
        needs_token = not self.url.startswith("unix:") and request.path != "/v1/health"
        if needs_token and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return refusal(401, "No or wrong token. Make one with `windlass token create`.")
        if request.method in ("POST", "PUT") and request.content_type != "application/json":
            return refusal(415, "Send JSON.")
        if request.path.startswith("/v1/workspaces/") and not self.is_open:
            return refusal(404, "There is no such workspace open.")
        return await handler(request)

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.creates += 1
        self.is_open = True
        return web.json_response({"id": "ws_1", "path": body["path"], "yolo": body.get("yolo", False)})

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response([{"id": "ws_1", "path": "/somewhere"}] if self.is_open else [])

    async def _workspace(self, request: web.Request) -> web.Response:
        return web.json_response({"id": "ws_1", "path": "/somewhere"})

    async def _get_sessions(self, request: web.Request) -> web.Response:
        return web.json_response(list(self.sessions.values()))

    async def _post_session(self, request: web.Request) -> web.Response:
        session_id = f"ses_{len(self.sessions) + 1}"
        self.add_session(session_id, (await request.json())["title"])
        return web.json_response(self.sessions[session_id])

    async def _session(self, request: web.Request) -> web.Response:
        session = self.sessions.get(request.match_info["sid"])
        if session is None:
            return refusal(404, "There is no such session.")
        if request.method == "PUT":
            session["title"] = (await request.json())["title"]
        if request.method == "DELETE":
            del self.sessions[session["id"]]
        return web.json_response(session)

    async def _get_messages(self, request: web.Request) -> web.Response:
        return web.json_response(self.messages.get(request.match_info["sid"], []))

    async def _prompt(self, request: web.Request) -> web.Response:
        body = await request.json()
        await self.accepts.wait()
        run_id = body["run_id"]
        if run_id not in self.runs:
            self.prompts.append(body)
            self.runs[run_id] = a_run(run_id, body["session_id"], body["prompt"])
            by = {"name": "tester", "client_id": request.query["client_id"]}
            self.runs[run_id]["state"] = "accepted"
            self.fact("run", "created", self.runs[run_id], by)
            self.on_prompt(body)
        accepted = {"run_id": run_id, "session_id": body["session_id"], "state": self.runs[run_id]["state"]}
        return web.json_response({**accepted, "disposition": "started", "position": 0}, status=202)

    async def _cancel(self, request: web.Request) -> web.Response:
        covered = [run["id"] for run in self.runs.values() if run["session_id"] == request.match_info["sid"]]
        for run_id in covered:
            self.on_cancel(run_id)
        return web.json_response({"canceled": covered})

    async def _cancel_run(self, request: web.Request) -> web.Response:
        self.on_cancel(request.match_info["rid"])
        return web.json_response({"state": self.runs[request.match_info["rid"]]["state"]}, status=202)

    async def _queue(self, request: web.Request) -> web.Response:
        return web.json_response([run for run in self.runs.values() if run["state"] == "queued"])

    async def _get_runs(self, request: web.Request) -> web.Response:
        after, limit = request.query.get("after"), int(request.query.get("limit", "50"))
        first = list(self.runs).index(after) + 1 if after else 0
        return web.json_response(list(self.runs.values())[first : first + limit])

    async def _run(self, request: web.Request) -> web.Response:
        run = self.runs.get(request.match_info["rid"])
        return refusal(404, "There is no such run.") if run is None else web.json_response(run)

    async def _permissions(self, request: web.Request) -> web.Response:
        return web.json_response(self.pending)

    async def _grant(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.grants.append((body["permission"]["id"], body["action"]))
        self.patterns.append(body.get("pattern", ""))
        self.pending = [asked for asked in self.pending if asked["id"] != body["permission"]["id"]]
        outcome = "denied" if body["action"] == "deny" else "granted"
        self.fact("permission_notification", "created", a_notification(body["permission"]["id"], outcome))
        return web.json_response({"resolved": self.resolved})

    async def _questions(self, request: web.Request) -> web.Response:
        return web.json_response(self.batches)

    async def _answer(self, request: web.Request) -> web.Response:
        self.answers.append(await request.json())
        return web.json_response({"resolved": self.resolved})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        self.stream_headers.append(dict(request.headers))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        stream = Stream(self, request)
        self._streams.add(stream)
        try:
            await stream.deliver(response)
        except ConnectionError:
            pass  # the client left
        finally:
            self._streams.discard(stream)
        return response


class Stream:
    """One connection of the event stream."""

    def __init__(self, server: FakeWindlass, request: web.Request) -> None:
        self._server = server
        self.wake = asyncio.Event()
        self.ended = False
        self.extra: list[tuple[int, str]] = []  # live events, each behind the fact of that number
        cursor = request.headers.get("Last-Event-ID") or request.query.get("after")
        self._reset = cursor is not None and "." in cursor and cursor.rpartition(".")[0] != server.epoch
        self._sent = len(server.facts) if cursor is None or self._reset else int(cursor.rpartition(".")[2])

    async def deliver(self, response: web.StreamResponse) -> None:
        server = self._server
        if server.greets:
            position = {"epoch": server.epoch, "head": len(server.facts), "floor": 0}
            lists = {"runs": server.active(), "permissions": server.pending, "questions": server.batches}
            await self._write(response, _event("hello", "created", {**position, **lists}))
            if self._reset:
                await self._write(response, _event("reset", "updated", {"reason": "epoch", **position}))
        server.attached.set()
        while not self.ended:
            if not server.silent:
                await self._write_new(response)
            await self.wake.wait()
            self.wake.clear()

    async def _write_new(self, response: web.StreamResponse) -> None:
        while self._sent < len(self._server.facts) or self.extra:
            if self.extra and self.extra[0][0] <= self._sent:
                await self._write(response, self.extra.pop(0)[1])
                continue
            self._sent += 1
            if self._sent not in self._server.skip:
                data = self._server.facts[self._sent - 1]
                await self._write(response, f"id: {self._server.epoch}.{self._sent}\ndata: {data}\n\n")

    async def _write(self, response: web.StreamResponse, text: str) -> None:
        await response.write(text.encode())


def _event(kind: str, change: str, payload: dict[str, Any]) -> str:
    return f"data: {json.dumps({'type': kind, 'payload': {'type': change, 'payload': payload}})}\n\n"


def refusal(status: int, message: str, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response({"message": message}, status=status, headers=named)


async def _empty(request: web.Request) -> web.Response:
    return web.Response()


async def _version(request: web.Request) -> web.Response:
    from windlass import __version__

    return web.json_response({"version": __version__, "commit": "", "build_id": "", "platform": "test"})


def a_run(run_id: str, session_id: str = "ses_1", prompt: str = "Hello", state: str = "accepted") -> dict[str, Any]:
    identity = {"id": run_id, "session_id": session_id, "state": state, "prompt": prompt}
    rest = {"cancel_requested": False, "disposition": "started", "position": 0, "message_ids": []}
    return {**identity, **rest, "usage": {}, "cost": 0.0, "created_at": "2026-01-01T00:00:00Z"}


def a_message(
    message_id: str, parts: list[dict[str, Any]], role: str = "assistant", session_id: str = "ses_1"
) -> dict[str, Any]:
    identity = {"id": message_id, "role": role, "session_id": session_id, "parts": parts}
    return {**identity, "model": "demo", "provider": "scripted", "created_at": 1, "updated_at": 1}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "data": {"text": words}}


def finish(reason: str = "end_turn") -> dict[str, Any]:
    return {"type": "finish", "data": {"reason": reason, "time": 1}}


def a_permission(permission_id: str, session_id: str = "ses_1", **more: Any) -> dict[str, Any]:
    identity = {"id": permission_id, "session_id": session_id, "root_session_id": session_id, "tool_call_id": "call_1"}
    asked = {"tool_name": "bash", "action": "execute", "description": "Run: ls", "params": {"command": "ls"}}
    return {**identity, **asked, "path": "/somewhere", **more}


def a_notification(permission_id: str, outcome: str, by: dict[str, str] | None = None) -> dict[str, Any]:
    answer = {"granted": outcome == "granted", "denied": outcome == "denied", "outcome": outcome}
    return {"id": permission_id, "tool_call_id": "call_1", **answer, "by": by}


def a_question(question_id: str, kind: str, question: str, *labels: str, **more: Any) -> dict[str, Any]:
    choices = [{"id": f"c{number}", "label": label} for number, label in enumerate(labels, 1)]
    return {"id": question_id, "type": kind, "question": question, "choices": choices, **more}


def a_batch(batch_id: str, *questions: dict[str, Any], session_id: str = "ses_1") -> dict[str, Any]:
    identity = {"id": batch_id, "session_id": session_id, "root_session_id": session_id, "tool_call_id": "call_1"}
    return {**identity, "questions": questions or [a_question("q1", "yes_no", "Go on?")]}
