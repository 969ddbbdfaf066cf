"""How large things are on the page: nothing is as high as the window that is not the window, and one part scrolls."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.page.page_world import PHONE, PageWorld
from tests.page.screen import Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")

_SCROLLERS = """() => [...document.querySelectorAll("main *")].filter(
    (part) => part.scrollHeight > part.clientHeight && /auto|scroll/.test(getComputedStyle(part).overflowY)
).map((part) => part.className)"""

# Where the button is whenever something on the page has changed, seen before the next frame is drawn.
_WATCH_DENY = """() => {
    const deny = document.querySelector("[data-testid=deny]");
    window.places = [deny.getBoundingClientRect().top];
    new MutationObserver(() => window.places.push(deny.getBoundingClientRect().top)).observe(
        document.querySelector("main"), {childList: true, subtree: true});
}"""

# Near enough to the end to be carried along; again, should text have been rendered meanwhile.
_LEAVE_THE_END = """() => {
    const scroller = document.querySelector(".conversation-scroll");
    const left = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (left > 30 && left < 45 && document.querySelector("[data-testid=new-messages]").hidden) return true;
    scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight - 40;
}"""

# Something below gets higher, and the page hears of an earlier scrolling before it can follow.
_GROW = """() => {
    const scroller = document.querySelector(".conversation-scroll");
    scroller.style.overflowAnchor = "none";  // else the browser scrolls by itself now and then
    const more = document.createElement("div");
    more.style.height = "300px";
    scroller.querySelector(".column").append(more);
    scroller.dispatchEvent(new Event("scroll"));
}"""

# Nothing has changed its height for twenty frames: all text is rendered.
_STILL = """() => new Promise((still) => {
    const scroller = document.querySelector(".conversation-scroll");
    let height = 0, frames = 0;
    const look = () => {
        frames = scroller.scrollHeight === height ? frames + 1 : 0;
        height = scroller.scrollHeight;
        if (frames < 20) requestAnimationFrame(look); else still();
    };
    look();
})"""

# A finger is put down on a button, something below gets higher, and the finger is lifted. How often the page scrolled
# until some frames after that, and until some frames after the time in which the click should have come.
_TOUCH = """() => new Promise((tell) => {
    const scroller = document.querySelector(".conversation-scroll");
    const plain = {scrollTop: Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop"), setTimeout};
    let scrolled = 0, timeIsUp = () => {};
    Object.defineProperty(scroller, "scrollTop", {
        get() { return plain.scrollTop.get.call(this); },
        set(place) { scrolled += 1; plain.scrollTop.set.call(this, place); },
    });
    const touch = (kind) => document.querySelector("[data-testid=deny]").dispatchEvent(
        new PointerEvent(kind, {bubbles: true, pointerType: "touch", button: 0}));
    const after = (frames, then) => frames ? requestAnimationFrame(() => after(frames - 1, then)) : then();
    touch("pointerdown");
    const more = document.createElement("div");
    more.style.height = "300px";
    scroller.querySelector(".column").append(more);
    window.setTimeout = (then) => { timeIsUp = then; return 1; };
    touch("pointerup");
    window.setTimeout = plain.setTimeout;
    after(3, () => {
        const meanwhile = scrolled;
        timeIsUp();
        after(3, () => tell([meanwhile, scrolled]));
    });
})"""

_IS_AT_END = """() => {
    const scroller = document.querySelector(".conversation-scroll");
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
}"""


async def say_much_and_ask(world: PageWorld, screen: Screen, text: str) -> None:
    """Have the model say this, and then ask to write a file."""
    await screen.prompt("Say much, and then write.")
    call = await world.call()
    await call.say(text)
    await call.tool("write", {"file_path": "new.txt", "content": "one\ntwo\n"})
    await call.end()


async def asked_at_the_end(world: PageWorld, **options: Any) -> Screen:
    """A page at the end of a long conversation, with all of it rendered and a question below."""
    screen = await world.screen(await world.session(await world.client()), **options)
    await screen.is_live()
    await say_much_and_ask(world, screen, "\n\n".join(f"Paragraph {number}." for number in range(60)))
    await expect(screen("permission-card")).to_contain_text("two")
    # A pointer that it does not let through yet is tried again by the driver, which scrolls before each try.
    await expect(screen("permission-card")).not_to_contain_class("held")
    await screen.page.evaluate(_STILL)
    await screen.page.wait_for_function(_IS_AT_END)
    return screen


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
    await say_much_and_ask(world, screen, "\n\n".join(f"Paragraph {number}." for number in range(60)))
    await expect(screen("permission-card")).to_contain_text("two")  # its diff has words that only a screen reader hears
    assert await screen.page.evaluate(_SCROLLERS) == ["conversation-scroll"]
    await screen("deny").click()
    await world.answer("Not written.")
    await screen.shows("Not written.")


async def test_a_button_does_not_slip_away_when_text_above_it_is_rendered(world: PageWorld) -> None:
    """A click that falls between two frames would hit what is not there on the screen, or be lost."""
    may_render = asyncio.Event()

    async def render_late(route: Route) -> None:
        await may_render.wait()
        await route.continue_()

    screen = await world.screen(await world.session(await world.client()))
    await screen.is_live()
    await screen.page.route("**/v1/markdown", render_late)
    await say_much_and_ask(world, screen, "\n\n".join(f"# Chapter {number}\n\n- one\n- two" for number in range(20)))
    await expect(screen("permission-card")).to_contain_text("two")
    await screen.page.evaluate(_WATCH_DENY)
    may_render.set()
    await expect(screen("conversation").get_by_role("heading", name="Chapter 19")).to_be_visible()
    places = await screen.page.evaluate("window.places")
    assert len(places) > 1 and max(places) - min(places) < 1
    await screen("deny").click()
    await world.answer("Not written.")
    await screen.shows("Not written.")


async def test_nothing_moves_between_press_and_release(world: PageWorld) -> None:
    """A button that is carried away under the finger is not clicked: the answer would be lost without a word."""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await say_much_and_ask(world, screen, "\n\n".join(f"Paragraph {number}." for number in range(60)))
    await screen("deny").hover()  # where it is, and may be clicked
    mouse = screen.page.mouse
    await screen.page.wait_for_function(_LEAVE_THE_END)
    await screen("deny").hover()
    await mouse.down()
    place = await screen("deny").bounding_box()
    await screen.page.set_viewport_size({"width": 1280, "height": 719})  # what else calls for the end to be kept
    await client.new_session("Another")
    await expect(screen("session-item").filter(has_text="Another")).to_be_visible()
    assert await screen("deny").bounding_box() == place
    await mouse.up()
    await world.answer("Not written.")
    await screen.shows("Not written.")


async def test_no_button_appears_under_a_finger_that_is_down(world: PageWorld) -> None:
    """It would take the release: neither what was pressed nor it itself is clicked, and the answer is lost."""
    screen = await asked_at_the_end(world)
    await screen("deny").hover()
    await expect(screen("new-messages")).to_be_hidden()
    await screen.page.mouse.down()
    await screen.page.evaluate(_GROW)
    await screen.page.evaluate("() => (document.querySelector('.conversation-scroll').scrollTop -= 100)")
    await screen.page.evaluate(_STILL)
    await expect(screen("new-messages")).to_be_hidden()
    await screen.page.evaluate("() => (document.querySelector('.conversation-scroll').scrollTop += 100)")
    await screen.page.mouse.up()
    await world.answer("Not written.")
    await screen.shows("Not written.")


async def test_what_grows_below_is_followed_though_the_page_hears_of_an_earlier_scrolling_first(
    world: PageWorld,
) -> None:
    """Nobody scrolled, and yet the newest words would come out of sight."""
    screen = await asked_at_the_end(world)
    await screen.page.evaluate(_GROW)
    await screen.page.wait_for_function(_IS_AT_END)
    await expect(screen("new-messages")).to_be_hidden()
    await screen("deny").click()
    await world.answer("Not written.")
    await screen.shows("Not written.")


async def test_a_finger_s_click_finds_the_button_where_the_finger_was_lifted(world: PageWorld) -> None:
    """It comes some frames after the release: what moves in between is not clicked, or something else is."""
    screen = await asked_at_the_end(world, **PHONE)
    meanwhile, later = await screen.page.evaluate(_TOUCH)
    assert meanwhile == 0
    assert later > 0  # no click came: what grew below is followed now
    await screen("deny").tap()
    await world.answer("Not written.")
    await screen.shows("Not written.")
