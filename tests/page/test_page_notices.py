"""Someone looks elsewhere: the title and the browser's notification tell them what waits.

A headless browser shows no notifications: what the page asks it to show is written down instead. Everything before that
is the page's own.
"""

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld
from tests.page.screen import Screen
from windlass.testing.server_process import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

RECORD = """
window.shownNotices = [];
window.Notification = class extends EventTarget {
    static permission = "granted";
    static requestPermission() { return Promise.resolve("granted"); }
    constructor(title, options) { super(); window.shownNotices.push(`${title} ${options?.body ?? ""}`); }
    close() {}
};
"""


async def away(world: PageWorld, tabs: int = 1) -> list[Screen]:
    """A person who has allowed notifications, and looks at something else now."""
    client = await world.client()
    where = await world.session(client, "Errand")
    person = await world.person(permissions=["notifications"])
    await person.context.add_init_script(RECORD)
    screens = [Screen(await person.tab(where)) for _ in range(tabs)]
    for screen in screens:
        await screen.is_live()
    await screens[0].page.get_by_role("button", name="Notifications").click()
    for screen in screens:  # what one tab was told holds for all of them
        await expect(screen.page.get_by_role("button", name="Notifications")).to_have_attribute("aria-pressed", "true")
    await screens[0].prompt("Make a file.")
    await screens[0].shows("Make a file.")
    for screen in screens:
        await screen.look_away()
    return screens


async def notices(screens: list[Screen], least: int) -> list[str]:
    """What the browser was asked to show, once there are so many."""
    found: list[str] = []

    async def are_there() -> bool:
        found[:] = [text for screen in screens for text in await screen.page.evaluate("window.shownNotices")]
        return len(found) >= least

    await until(are_there, f"{least} notifications")
    return found


async def test_something_that_waits_is_in_the_title_until_it_is_answered(world: PageWorld) -> None:
    """A run would wait all night for someone three tabs away (B25)."""
    (screen,) = await away(world)
    plain = await screen.page.title()
    await world.use("bash", {"command": "touch made.txt"})
    await expect(screen.page).not_to_have_title(plain)
    assert (await screen.page.title()).startswith(("(1)", "●"))
    await screen.look_back()
    await screen("deny").click()
    await world.answer("Then not.")
    await expect(screen("run-end")).to_have_count(1)
    assert not (await screen.page.title()).startswith("(")


async def test_one_notification_is_shown_for_all_tabs_when_a_run_waits_and_one_when_it_ends(world: PageWorld) -> None:
    """People would be told by no tab, or by eight (B25)."""
    screens = await away(world, tabs=2)
    await world.use("bash", {"command": "touch made.txt"})
    for screen in screens:
        await expect(screen("permission-card")).to_have_count(1)
    assert len(await notices(screens, 1)) == 1
    await screens[1]("allow-once").click()
    await world.answer("It is there.")
    for screen in screens:
        await expect(screen("run-end")).to_have_count(1)
    assert len(await notices(screens, 2)) == 2
