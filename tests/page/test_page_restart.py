"""The server is killed under an open page, and started again on the same port and data."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.page.contexts import Contexts
from tests.page.page_world import PageWorld, address
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess, openai_config

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def own_world(contexts: Contexts, tmp_path: Path) -> AsyncIterator[PageWorld]:
    """A server of the test's own, which may be killed."""
    directory = tmp_path / "project"
    directory.mkdir()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer())
        config = openai_config(model.url)
        server = ServerProcess(tmp_path / "server", "--drain", "0", config=config)
        await server.start()
        port = urlsplit(server.url).port
        await server.stop()
        again = ServerProcess(tmp_path / "server", "--drain", "0", config=config, listen=f"127.0.0.1:{port}")
        await stack.enter_async_context(again)
        world = PageWorld(again, model, directory, stack, contexts)
        yield world
        await world.close_profiles()


async def test_a_page_says_that_the_server_is_gone_and_catches_up_without_a_reload(own_world: PageWorld) -> None:
    """People would have to reload, and lose what they were typing (B44 I5)."""
    world = own_world
    client = await world.client()
    session_id = await client.new_session("Long lived")
    screen = await world.screen(address(client, session_id))
    world.profiles[0].expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|status of 404")
    await screen.is_live()
    await screen.prompt("First.")
    await world.answer("The first answer.")
    await screen.shows_once("The first answer.")
    await screen.page.evaluate("window.notReloaded = true")
    await screen.prompt("Second.")
    await (call := await world.call()).say("Half of an ans")
    await screen.shows("Half of an ans")

    await world.server.kill()
    await expect(screen("connection")).not_to_have_text("live")
    await screen("prompt").fill("Typed while it was away.")
    await world.server.start()
    await screen.is_live()

    await screen.shows_once("First.")
    await screen.shows_once("The first answer.")
    await screen.shows_once("Second.")
    await expect(screen("run-end")).to_have_count(2)
    await expect(screen("prompt")).to_have_value("Typed while it was away.")
    await screen("prompt").press("Enter")
    await world.answer("The third answer.")
    await screen.shows_once("Typed while it was away.")
    await screen.shows_once("The third answer.")
    assert await screen.page.evaluate("window.notReloaded")
    assert call.request


async def test_a_prompt_that_was_sent_while_the_server_was_away_is_not_lost(own_world: PageWorld) -> None:
    """Words a person typed would be gone with the connection (B44)."""
    world = own_world
    client = await world.client()
    session_id = await client.new_session("Interrupted")
    await client.new_session("Looked at while it was away")
    screen = await world.screen(address(client, session_id))
    await expect(screen("session-item")).to_have_count(2)
    world.profiles[0].expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|status of 404")
    await screen.is_live()
    await world.server.kill()
    await expect(screen("connection")).not_to_have_text("live")
    await screen.prompt("Into the void.")
    await expect(screen("toast")).to_contain_text("reach")
    await expect(screen("prompt")).to_have_value("Into the void.")
    await screen("session-item").filter(has_text="Looked at").get_by_role("link").click()
    await screen.shows("Loading")
    await world.server.start()
    await screen.is_live()
    await screen.shows("Nothing was said here yet.")
    await screen("session-item").filter(has_text="Interrupted").get_by_role("link").click()
    await expect(screen("prompt")).to_have_value("Into the void.")
    await screen("prompt").press("Enter")
    await world.answer("Out of it.")
    await screen.shows_once("Into the void.")
    await screen.shows_once("Out of it.")
