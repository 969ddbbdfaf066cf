"""A workspace with something in it to attack: a session whose run waits for a permission, one queued behind it, and a
session whose run waits for the answer to a question."""

import json
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from windlass.testing.server_process import Api, EventTap, ServerProcess, until

Starter = Callable[..., Awaitable[ServerProcess]]
QUESTION = {"type": "yes_no", "question": "Go on?"}
SCRIPT = {
    "rules": [
        {"match": "touch", "replies": [[{"tool": "bash", "input": {"command": "touch ran.txt"}}], [{"say": "Done."}]]},
        {"match": "wonder", "replies": [[{"tool": "question", "input": {"questions": [QUESTION]}}], [{"say": "Oh."}]]},
        {"match": "*", "replies": [[{"say": "Hello."}]]},
    ]
}


def scripted_config(directory: Path) -> str:
    """A config whose model follows SCRIPT."""
    script = directory / "script.json"
    script.write_text(json.dumps(SCRIPT))
    return f'model = "test/model"\n[providers.test]\ntype = "scripted"\nscript = "{script}"\n'


class World:
    """One workspace on a server, the client that opened it, and the ids of what is in it."""

    def __init__(self, server: ServerProcess, directory: Path, *, keep_alive: bool = False) -> None:
        """`keep_alive`: for a world that ends with its test. One may outlive a test, its connections may not."""
        self.server = server
        self.directory = directory
        self.api = Api(server, keep_alive=keep_alive)
        self.ids: dict[str, str] = {}
        self._tap: EventTap | None = None

    async def __aenter__(self) -> "World":
        self.directory.mkdir(parents=True, exist_ok=True)
        api = self.api
        await api.open(self.directory)
        session_id = await api.new_session("Private notes")
        idle_session_id = await api.new_session("Nothing yet")
        first = await api.prompt(session_id, "touch a file")
        second = await api.prompt(session_id, "then say hello")
        curious_id = await api.new_session("Open questions")
        await api.prompt(curious_id, "wonder about something")
        pending: list[dict[str, Any]] = []

        async def is_asked() -> bool:
            permissions, batches = await api.ok("GET", "W/permissions"), await api.ok("GET", "W/questions")
            pending[:] = [*permissions, *batches]
            return bool(permissions and batches)

        await until(is_asked, "one run asks for permission, the other a question")
        self._tap = await api.stream().__aenter__()
        messages = await api.messages(session_id)
        self.ids = {
            "directory": str(self.directory),
            "page_file": "dom.js",
            "edition": "0" * 32,
            "client_id": api.client_id,
            "workspace_id": api.workspace_id,
            "session_id": session_id,
            "idle_session_id": idle_session_id,
            "waiting_run_id": first["run_id"],
            "run_id": second["run_id"],
            "new_run_id": f"run-{uuid.uuid4()}",
            "permission_id": pending[0]["id"],
            "batch_id": pending[1]["id"],
            "curious_session_id": curious_id,
            "message_id": messages[0]["id"],
        }
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._tap is not None:
            await self._tap.drop()
        for name in ("session_id", "curious_session_id"):
            await self.api.call("POST", f"W/agent/sessions/{self.ids.get(name)}/cancel")
        await self.api.call("DELETE", f"/v1/clients/{self.api.client_id}")
        await until(self._is_closed, "the workspace is closed")
        await self.api.__aexit__()

    async def _is_closed(self) -> bool:
        return (await self.api.call("GET", "W"))[0] == 404

    async def state(self) -> dict[str, Any]:
        """All that a request could have changed: equal before and after one that was refused."""
        paths = ("W", "W/sessions", "W/runs", "W/permissions", "W/permissions/skip", "W/questions")
        async with Api(self.server) as api:  # one connection for all of it, closed when it was seen
            api.workspace_id = self.api.workspace_id
            seen = [await api.call("GET", path) for path in paths]
            # Those of this world alone: what another test opened may close in this very moment.
            opened = [w for w in await api.ok("GET", "/v1/workspaces") if w["path"].startswith(str(self.directory))]
            messages = await api.messages(self.ids["session_id"])
        tokens = (self.server.data_dir / "tokens.json").read_bytes()
        files = sorted(path.name for path in self.directory.iterdir())
        told = {"head": await self.head(), "seen": seen, "opened": opened, "messages": messages}
        return {**told, "tokens": tokens, "files": files}

    async def head(self) -> int:
        """The number of the newest fact of the workspace's log."""
        async with self.api.stream() as tap:
            hello = await tap.wait_for("hello")
        return int(hello.body["head"])
