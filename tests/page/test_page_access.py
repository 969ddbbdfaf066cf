"""The page without a mouse and without eyes: axe finds nothing to complain of, and the keyboard is enough."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.page.page_world import PHONE, PageWorld, address
from tests.page.screen import Screen
from tests.page.shown import everything

axe = pytest.importorskip("axe_playwright_python.async_playwright", reason="no axe: `make setup` installs it")
pytestmark = pytest.mark.asyncio(loop_scope="session")

RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {**PHONE, "color_scheme": "light"},
    "dark phone": {**PHONE, "color_scheme": "dark"},
}

# What has the focus, and whether one can see that it has; a field shows it by its caret.
FOCUS = """() => {
    const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
    const marked = style.outlineStyle !== "none" || style.boxShadow !== "none" || one.matches("textarea, input");
    return [one.outerHTML.slice(0, 100), one === document.body || (marked && box.width > 1)];
}"""

# Two keys before the next frame is drawn, each for what has the focus then.
ESCAPE_AND_ASK = """() => ["Escape", "?"].forEach((key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true})))"""


async def is_accessible(screen: Screen) -> None:
    found = await axe.Axe().run(screen.page, options={"runOnly": RULES, "resultTypes": ["violations"]})
    complaints = [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found.response["violations"]
        for node in violation["nodes"]
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("look", LOOKS)
async def test_axe_finds_nothing_on_a_session_with_everything_in_it(world: PageWorld, look: str) -> None:
    """People who cannot see the page, or not well, could not use it."""
    client = await world.client()
    shown = await everything(world, client)
    screen = await world.screen(address(client, shown.session_id), **LOOKS[look])
    await expect(screen("permission-card")).to_be_visible()
    await screen.is_live()
    await is_accessible(screen)
    await screen("deny").click()
    await world.use("question", {"questions": [{"type": "yes_no", "question": "Go on?"}]})
    await expect(screen("question-card")).to_be_visible()
    await is_accessible(screen)


@pytest.mark.parametrize("look", LOOKS)
async def test_axe_finds_nothing_on_the_other_screens(world: PageWorld, look: str) -> None:
    """The way to the conversation would be closed to some."""
    client = await world.client()
    session_id = await client.new_session("Finished")
    run_id = (await client.prompt(session_id, "Look."))["run_id"]
    await world.use("ls", {"path": "."})
    await world.answer("Seen.")
    await client.run_over(run_id)
    screen = await world.screen("/", **LOOKS[look])
    await expect(screen("welcome")).to_be_visible()
    await is_accessible(screen)
    await screen.page.goto(f"{world.server.url}{address(client, session_id)}/run/{run_id}")
    await expect(screen("timeline")).to_be_visible()
    await is_accessible(screen)
    await screen.page.keyboard.press("Control+k")
    await screen("search-input").fill("Seen")
    await expect(screen("search-hit").first).to_be_visible()
    await is_accessible(screen)
    await screen.page.keyboard.press("Escape")
    await expect(screen("search-dialog")).not_to_be_visible()
    await screen.page.locator("body").press("?")
    await expect(screen("help")).to_be_visible()
    await is_accessible(screen)


async def test_the_page_that_refuses_is_readable_too(world: PageWorld) -> None:
    """Those who most need to be told what to do would not be told."""
    profile = await world.profile()
    profile.expect("401")
    await is_accessible(Screen(await profile.tab("/")))


async def test_the_keyboard_alone_makes_a_session_prompts_answers_cancels_and_searches(world: PageWorld) -> None:
    """Whoever cannot use a mouse could not use it at all."""
    client = await world.client()
    screen = await world.screen(address(client))
    keyboard = screen.page.keyboard
    await screen.is_live()
    await keyboard.press("n")
    await expect(screen("prompt")).to_be_focused()
    await keyboard.type("Make a file.")
    await keyboard.press("Shift+Enter")
    await keyboard.type("Then tell.")
    await keyboard.press("Enter")
    call = await world.call()
    assert call.request["messages"][-1]["content"] == "Make a file.\nThen tell."
    await call.tool("bash", {"command": "touch made.txt"})
    await call.end()
    await expect(screen("permission-card")).to_be_visible()
    await screen("permission-card").focus()
    await keyboard.press("a")
    await expect(screen("permission-card")).to_have_count(0)
    await (call := await world.call()).say("It goes on")
    await screen.shows("It goes on")
    await screen("prompt").focus()
    await keyboard.press("Control+.")
    await expect(screen("run-end")).to_contain_text("cancel", ignore_case=True)
    await keyboard.press("Control+k")
    await expect(screen("search-input")).to_be_focused()
    await keyboard.type("It goes")
    await expect(screen("search-hit").first).to_be_visible()
    await keyboard.press("Escape")
    assert (world.directory / "made.txt").exists()


async def test_a_key_right_after_the_search_was_closed_is_not_for_its_field(world: PageWorld) -> None:
    """What a quick hand types would be written where nobody sees it, and do nothing."""
    screen = await world.screen(address(await world.client()))
    await screen.is_live()
    await screen.page.keyboard.press("Control+k")
    await expect(screen("search-input")).to_be_focused()
    await screen.page.evaluate(ESCAPE_AND_ASK)
    await expect(screen("search-dialog")).not_to_be_visible()
    await expect(screen("help")).to_be_visible()


async def test_focus_can_be_seen_wherever_the_tab_key_leads(world: PageWorld) -> None:
    """Whoever uses the keyboard would not know where they are."""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.page.locator("body").press("Tab")
    seen = []
    for _ in range(25):
        seen.append(await screen.page.evaluate(FOCUS))
        await screen.page.keyboard.press("Tab")
    assert [name for name, is_seen in seen if not is_seen] == []
    assert len({name for name, _ in seen}) > 5
