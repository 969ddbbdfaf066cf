"""The page on a phone: 390 pixels wide, one hand."""

import pytest
from playwright.async_api import expect

from tests.page.page_world import PHONE, PageWorld
from tests.page.screen import Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")

TARGET_PIXELS = 40  # what a thumb hits without looking
# Links in a line of text are as high as the line: that is where they belong. What nobody sees needs no size.
SMALL_TARGETS = """(least) => [...document.querySelectorAll("button, a, summary, select, textarea, input")]
    .filter((one) => one.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !one.closest("p, .skip"))
    .map((one) => [one.closest("label") ?? one, one])
    .filter(([area, one]) => {
        const box = area.getBoundingClientRect();
        return box.width > 1 && (box.height < least || box.width < least) && box.right > 0 && box.left < innerWidth;
    })
    .map(([area, one]) => `${one.outerHTML.slice(0, 120)} ${JSON.stringify(area.getBoundingClientRect())}`)"""

WIDE = "word " * 50 + "`" + "unbroken" * 40 + "`\n\n```\n" + "x" * 300 + "\n```\n\n|a|b|\n|-|-|\n|" + "c" * 90 + "|d|"


async def fits(screen: Screen) -> None:
    """Nothing is cut off at the side, and everything to be touched is large enough."""
    page = screen.page
    assert await page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), "one has to scroll sideways"
    small = await page.evaluate(SMALL_TARGETS, TARGET_PIXELS)
    assert not small, "too small for a thumb:\n" + "\n".join(small)


async def test_a_session_is_found_read_prompted_answered_and_cancelled_with_a_thumb(world: PageWorld) -> None:
    """Whoever is asked something while away could do nothing about it (B25 B28)."""
    client = await world.client()
    session_id = await client.new_session("From the desk")
    await client.prompt(session_id, "Say something long.")
    await world.answer(WIDE)
    screen = await world.screen(f"/#/w/{client.workspace_id}", **PHONE)
    if not await screen("session-item").first.is_visible():
        await screen.page.get_by_role("button", name="sessions").first.tap()
    await screen("session-item").filter(has_text="From the desk").tap()
    await screen.is_live()
    await screen.shows("Say something long.", "unbroken")
    await expect(screen("sidebar")).not_to_be_in_viewport()
    await fits(screen)

    await screen("prompt").fill("Make a file.")
    await screen("send").tap()
    await (call := await world.call()).tool("bash", {"command": "touch made.txt" + " && true" * 40})
    await call.end()
    await expect(screen("permission-card")).to_be_in_viewport()
    await fits(screen)
    await screen("allow-once").tap()
    await expect(screen("permission-card")).to_have_count(0)

    await (call := await world.call()).say("It goes on and on")
    await screen.shows("It goes on and on")
    await screen("cancel").tap()
    await expect(screen("run-end").last).to_contain_text("cancel", ignore_case=True)
    assert (world.directory / "made.txt").exists()
    await fits(screen)


async def test_the_first_screen_and_the_drawer_fit(world: PageWorld) -> None:
    """The first thing seen on a phone would be a page for something else."""
    client = await world.client()
    await client.new_session("One")
    screen = await world.screen("/", **PHONE)
    await expect(screen("welcome")).to_be_visible()
    await fits(screen)


async def test_what_is_typed_does_not_make_the_phone_zoom(world: PageWorld) -> None:
    """Phones zoom into fields with small letters, and do not zoom out again."""
    client = await world.client()
    screen = await world.screen(await world.session(client), **PHONE)
    await expect(screen("prompt")).to_be_visible()
    fields = screen.page.locator("input:not([type=radio], [type=checkbox], [type=file]), textarea, select")
    sizes = await fields.evaluate_all("(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))")
    assert min(sizes) >= 16
