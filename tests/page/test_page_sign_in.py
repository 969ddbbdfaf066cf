"""How a browser gets in, and what it is told when it may not."""

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld
from tests.page.profile import ticket
from tests.page.screen import Screen
from windlass.server.tickets import COOKIE
from windlass.server.tokens import TokenStore

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_link_with_a_ticket_opens_the_page_and_leaves_no_ticket_in_the_address(world: PageWorld) -> None:
    """People could not get in, or the next one to look at their history could (A3)."""
    profile = await world.profile()
    page = await profile.tab(await ticket(world.server))
    await expect(Screen(page)("sidebar")).to_be_visible()
    assert "ticket" not in page.url
    await page.reload()
    await expect(Screen(page)("sidebar")).to_be_visible()


async def test_a_browser_without_a_cookie_is_told_what_to_do(world: PageWorld) -> None:
    """People would look at an error that only programs can read (A1)."""
    profile = await world.profile()
    profile.expect("401")
    page = await profile.tab("/")
    await expect(page.locator("body")).to_contain_text("windlass pair")
    assert await page.locator("script").count() == 0


async def test_a_ticket_that_was_used_lets_nobody_else_in_and_says_so(world: PageWorld) -> None:
    """Whoever finds the link later would be let in (A3)."""
    path = await ticket(world.server)
    first, second = await world.profile(), await world.profile()
    second.expect("401")
    await first.tab(path)
    page = await second.tab(path)
    await expect(page.locator("body")).to_contain_text("windlass pair")
    assert await second.context.cookies() == []


async def test_a_browser_that_may_only_read_sees_everything_and_is_refused_kindly(world: PageWorld) -> None:
    """A guest could drive the agent, or would not understand why nothing happens (A12)."""
    guest = TokenStore(world.server.data_dir).create("guest", "read")
    client = await world.client()
    session_id = await client.new_session("To be read")
    await client.prompt(session_id, "Hello.")
    await world.answer("**Nothing** to hide.")
    profile = await world.profile()
    profile.expect("403")
    await profile.context.add_cookies([{"name": COOKIE, "value": guest, "url": world.server.url}])
    screen = Screen(await profile.tab(f"/#/w/{client.workspace_id}/s/{session_id}"))
    await screen.is_live()
    await screen.shows_once("Nothing to hide.")
    await expect(screen("conversation").locator("strong")).to_have_text("Nothing")
    await screen.prompt("May I?")
    await expect(screen("toast")).to_contain_text("may only read")
    await expect(screen("prompt")).to_have_value("May I?")
    assert len(await client.runs(session_id)) == 1
