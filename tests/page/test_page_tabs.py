"""Eight tabs of one browser, which allows six connections: all of them live on one stream."""

import asyncio
import uuid

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld, address
from tests.page.screen import Screen
from windlass.testing.server_process import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# A channel whose first word about who looks is overtaken by any that does not wait for it. Answers how many were under
# way at once when the last of them has been answered.
_LOOK_TWICE = """async ([workspace, clientId, session]) => {
    const { createChannel } = await import("/page/channel.js");
    const plainFetch = window.fetch;
    let begun = 0, underWay = 0, most = 0, answered;
    const lastAnswered = new Promise((resolve) => (answered = resolve));
    window.fetch = async (address, options) => {
        if (!address.includes("current-session")) return plainFetch(address, options);
        const isFirst = ++begun === 1;
        most = Math.max(most, ++underWay);
        if (isFirst) {
            window.channel.look(session);
            for (let frame = 0; frame < 10; frame += 1) await new Promise(requestAnimationFrame);
        }
        try {
            return await plainFetch(address, options);
        } finally {
            if (--underWay === 0 && begun > 1) answered(most);
        }
    };
    const handlers = { deliver: () => {}, report: () => {} };
    window.channel = createChannel({ workspace, path: "", clientId, ...handlers });
    window.channel.start();
    return lastAnswered;
}"""


async def test_eight_tabs_of_one_browser_work_on_one_stream_and_outlive_the_first(world: PageWorld) -> None:
    """The seventh tab would load for ever (B17)."""
    client = await world.client()
    session_id = await client.new_session("Shared")
    person = await world.person()
    pages = await asyncio.gather(*(person.tab(address(client, session_id)) for _ in range(8)))
    screens = [Screen(page) for page in pages]
    for screen in screens:
        await screen.is_live()

    async def one_client_looks() -> bool:
        return bool((await client.session(session_id))["attached_clients"] == 1)

    await until(one_client_looks, "the server sees one client")
    await screens[7].prompt("To all of you.")
    await world.answer("Heard by eight.")
    for screen in screens:
        await screen.shows_once("Heard by eight.")
    await pages[0].close()
    world.auto(lambda request: [{"say": "To " + request["messages"][-1]["content"]}])
    for number, screen in enumerate(screens[1:]):
        await screen.prompt(f"tab {number}.")
    for screen in screens[1:]:
        await expect(screen("run-end")).to_have_count(8)
        await screen.shows_once("To tab 6.")
        await screen.is_live()
    await until(one_client_looks, "the server still sees one client")


async def test_what_a_tab_looks_at_is_told_in_the_order_in_which_it_looked(world: PageWorld) -> None:
    """The answer to an earlier look would come last: who watches a session would not be seen by the others."""
    client = await world.client()
    session_id = await client.new_session("Looked at")
    screen = await world.screen("/")
    arguments = [client.workspace_id, str(uuid.uuid4()), session_id]
    assert await screen.page.evaluate(_LOOK_TWICE, arguments) == 1
    assert (await client.session(session_id))["attached_clients"] == 1
    await screen.page.evaluate("() => window.channel.pause()")


async def test_tabs_on_more_workspaces_than_there_are_streams_catch_up_when_they_are_looked_at(
    world: PageWorld,
) -> None:
    """A tab that was not looked at for a while would show the past for ever (B17)."""
    person = await world.person()
    screens = []
    for number in range(6):
        directory = world.directory / f"part-{number}"
        directory.mkdir()
        client = await world.client_of(directory)
        session_id = await client.new_session("Apart")
        screen = Screen(await person.tab(address(client, session_id)))
        await screen.is_live()
        await screen.look_away()
        screens.append((client, session_id, screen))
    client, session_id, first = screens[0]
    await expect(first("connection")).to_have_text("paused")
    await client.ok("PUT", f"W/sessions/{session_id}", {"title": "Renamed meanwhile"})
    await first.look_back()
    await first.is_live()
    await expect(first("session-item")).to_contain_text("Renamed meanwhile")
