"""A real server with a past, for the tests of one module of commands: sessions, tools, a sub-agent, and a queue."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windlass.testing.server_process import Api, ServerProcess

HOLD_MS = 600_000  # of a run that others wait behind; it is cancelled long before
SCRIPT: dict[str, Any] = {
    "rules": [
        {"match": "hold fast", "replies": [[{"pause_ms": HOLD_MS}]]},
        {
            "match": "delegate",
            "replies": [
                [{"tool": "agent", "input": {"action": "start", "role": "explore", "prompt": "look around"}}],
                [{"tool": "agent", "input": {"action": "wait"}}],
                [{"say": "It found a rope."}],
            ],
        },
        {"match": "look around", "replies": [[{"say": "There is a rope in the locker."}]]},
        {
            "match": "write",
            "replies": [
                [
                    {"think": "A file, then."},
                    {"say": "I write it.\n\n```"},
                    {"tool": "write", "input": {"file_path": "knot.txt", "content": "one\n```\ntwo\n"}},
                ],
                [{"say": "The windlass holds."}],
            ],
        },
        {"match": "*", "replies": [[{"say": "Aye."}]]},
    ]
}
CONFIG = """
model = "fake/one"
[providers.fake]
type = "scripted"
script = "{script}"
[permissions]
allow = ["*"]
"""


class LivingServer:
    """The server with its directory; ids of what is in it."""

    def __init__(self, directory: Path) -> None:
        self.home = directory
        self.project = directory / "project"
        self.project.mkdir()
        script = directory / "script.json"
        script.write_text(json.dumps(SCRIPT))
        self.server = ServerProcess(directory, config=CONFIG.format(script=script))
        self.runs: dict[str, str] = {}  # prompt: id
        self.sessions: dict[str, str] = {}  # title: id

    @property
    def data_dir(self) -> Path:
        return self.server.data_dir

    def at(self) -> list[str]:
        """Options that name it and its directory."""
        return ["--data-dir", str(self.data_dir), "-C", str(self.project)]

    async def start(self) -> None:
        await self.server.start()
        async with Api(self.server) as api:
            await api.open(self.project)
            for title, prompt in (("Knots", "write a file"), ("Crew", "delegate it")):
                await self._ask(api, title, prompt)
                await api.run_over(self.runs[prompt])

    async def _ask(self, api: Api, title: str, *prompts: str) -> None:
        self.sessions[title] = await api.new_session(title)
        for prompt in prompts:
            self.runs[prompt] = (await api.prompt(self.sessions[title], prompt))["run_id"]

    def queue_up(self) -> str:
        """A session in which one run goes on and two wait behind it; its id."""

        async def work() -> None:
            async with Api(self.server) as api:
                await api.open(self.project)
                await self._ask(api, "Waiting", "hold fast", "first in line", "second in line")

        asyncio.run(work())
        return self.sessions["Waiting"]

    def state(self, run_id: str) -> str:
        async def work() -> str:
            async with Api(self.server) as api:
                await api.open(self.project)
                return str((await api.run(run_id))["state"])

        return asyncio.run(work())

    def hold_open(self) -> Callable[[], None]:
        """Hold the workspace open, as a client that is attached does; call what this returns to let go."""

        async def take() -> str:
            async with Api(self.server) as api:
                await api.open(self.project)
                return api.client_id

        async def let_go() -> None:
            async with Api(self.server) as api:
                await api.ok("DELETE", f"/v1/clients/{client}")

        client = asyncio.run(take())
        return lambda: asyncio.run(let_go())
