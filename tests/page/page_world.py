"""A test's own workspace on the shared server, seen in browsers: profiles, tabs, and the model's next words."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext

from tests.e2e.shared_world import Client, World
from tests.page.contexts import Contexts
from tests.page.profile import Profile
from tests.page.screen import Screen
from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}


class PageWorld(World):
    """What `World` gives, and `profile()`, `person()`, `open()` for browsers on it."""

    def __init__(
        self, server: ServerProcess, model: ModelServer, directory: Path, stack: AsyncExitStack, contexts: Contexts
    ) -> None:
        super().__init__(server, model, directory, stack)
        self.contexts = contexts
        self.profiles: list[Profile] = []

    async def profile(self, **options: Any) -> Profile:
        """A browser of someone who has no cookie yet, and never saw the page."""
        return self._profile(await self.contexts.new(**options))

    async def person(self, **options: Any) -> Profile:
        """A browser of someone who is signed in and never saw the page."""
        profile = await self.profile(**options)
        await profile.sign_in()
        return profile

    async def screen(self, where: str = "/", **options: Any) -> Screen:
        """What one more signed-in person sees there; without options in a browser that has the page's files already."""
        if options:
            return Screen(await (await self.person(**options)).tab(where))
        profile = self._profile(await self.contexts.lend())
        await profile.sign_in()
        return Screen(await profile.tab(where))

    def _profile(self, context: BrowserContext) -> Profile:
        profile = Profile(self.server, self.contexts, context)
        self.profiles.append(profile)
        return profile

    async def close_profiles(self) -> None:
        for profile in self.profiles:
            await profile.close()

    async def call(self) -> ModelCall:
        """The next request to the model. When none comes, what stands on every page is said: a click may be lost."""
        try:
            return await super().call()
        except TimeoutError as error:
            shown = [line for profile in self.profiles for line in await profile.shown()]
            raise TimeoutError("\n".join([str(error), *shown])) from None

    async def session(self, client: Client, title: str = "A conversation") -> str:
        """The address of a new session in the page."""
        return address(client, await client.new_session(title))

    async def client_of(self, directory: Path) -> Client:
        """A client of another directory than the test's own."""
        client = await self._stack.enter_async_context(Client(self.server))
        self._clients.append(client)
        await client.open(directory)
        return client

    async def use(self, name: str, arguments: dict[str, Any]) -> ModelCall:
        """Answer the next request to the model by asking for a tool."""
        call = await self.call()
        await call.tool(name, arguments)
        await call.end()
        return call

    async def answer(self, *words: str) -> ModelCall:
        """Answer the next request to the model with these words, and end it."""
        call = await self.call()
        for word in words:
            await call.say(word)
        await call.end()
        return call


def address(client: Client, session_id: str = "") -> str:
    """Where the page shows a session, or the workspace."""
    return f"/#/w/{client.workspace_id}" + (f"/s/{session_id}" if session_id else "")
