"""How large things are on the page: nothing is as high as the window that is not the window, and one part scrolls."""

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld

pytestmark = pytest.mark.asyncio(loop_scope="session")

_SCROLLERS = """() => [...document.querySelectorAll("main *")].filter(
    (part) => part.scrollHeight > part.clientHeight && /auto|scroll/.test(getComputedStyle(part).overflowY)
).map((part) => part.className)"""


async def test_what_a_command_of_ones_own_printed_stands_below_it_and_is_no_higher_than_it_needs(
    world: PageWorld,
) -> None:
    """One line of output would push everything before it, and itself, out of sight."""
    screen = await world.screen(await world.session(await world.client()))
    await screen.is_live()
    await screen.prompt("!echo only this line")
    printed = screen("message").filter(has_text="$ echo only this line")
    await expect(printed).to_be_in_viewport()
    box = await printed.bounding_box()
    assert box is not None and box["height"] < 200


async def test_a_long_conversation_scrolls_in_one_place(world: PageWorld) -> None:
    """Two scrollbars would stand side by side, and the wheel would move now this and now that."""
    screen = await world.screen(await world.session(await world.client()))
    await screen.is_live()
    await screen.prompt("Say much, and then write.")
    call = await world.call()
    await call.say("\n\n".join(f"Paragraph {number}." for number in range(60)))
    await call.tool("write", {"file_path": "new.txt", "content": "one\ntwo\n"})
    await call.end()
    await expect(screen("permission-card")).to_contain_text("two")  # its diff has words that only a screen reader hears
    assert await screen.page.evaluate(_SCROLLERS) == ["conversation-scroll"]
    await screen("deny").click()
    await world.answer("Not written.")
    await screen.shows("Not written.")
