"""One server and its model for a whole module: starting one takes a second, and most claims do not need their own.

Each test takes a new directory, so that no two of them share a workspace.

    pytestmark = pytest.mark.asyncio(loop_scope="module")

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def lasting_one(tmp_path_factory):
        async with OneServer(tmp_path_factory.mktemp("one"), "--create-grace", "0.5") as one:
            yield one

Its tests take `one`.
"""

import itertools
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, openai_config

Entered = TypeVar("Entered")


class OneServer:
    """`server`, `model`, and clients on directories of their own. Leaving it closes all of them."""

    def __init__(self, root: Path, *arguments: str, **sections: str) -> None:
        self.model = ModelServer()
        self._root = root
        self._arguments = arguments
        self._sections = sections
        self._numbers = itertools.count(1)
        self._stack = AsyncExitStack()
        self._clients = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.model)
        self.server = ServerProcess(
            self._root / "server", *self._arguments, config=openai_config(self.model.url, **self._sections)
        )
        await self._stack.enter_async_context(self.server)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stack.aclose()

    async def tidy(self) -> None:
        """Close what one test opened; the server and the model stay for the next one."""
        await self._clients.aclose()
        self.model.hang_up()

    def directory(self) -> Path:
        """A directory nobody has opened yet."""
        path = self._root / f"project-{next(self._numbers)}"
        path.mkdir()
        return path

    async def client(self, directory: Path | None = None) -> Api:
        """A client that has opened a workspace: of this directory, or of a new one."""
        api = await self._clients.enter_async_context(Api(self.server))
        await api.open(directory or self.directory())
        return api

    async def enter(self, context: AbstractAsyncContextManager[Entered]) -> Entered:
        """Keep something open until the test is over."""
        return await self._clients.enter_async_context(context)

    async def onlooker(self, workspace_id: str) -> Api:
        """A client that reads the workspace without holding it open."""
        api = await self._clients.enter_async_context(Api(self.server))
        api.workspace_id = workspace_id
        return api

    async def answered(self, api: Api, session_id: str, prompt: str, answer: str) -> dict[str, Any]:
        """A whole run: the prompt, and the model's answer to it."""
        accepted = await api.prompt(session_id, prompt)
        call = await self.model.next_call()
        await call.say(answer)
        await call.end()
        return await api.run_over(accepted["run_id"])
