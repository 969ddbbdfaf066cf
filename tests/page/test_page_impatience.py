"""People who are quick, agents that nobody opened, and what happens when the page's own worker ends."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.page.page_world import PageWorld, address
from tests.page.screen import Screen
from windlass.testing.server_process import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


class SlowDoor:
    """Holds back the page's prompts until it is opened: what a slow network does."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self.came = asyncio.Event()

    async def stand_in(self, page: Page) -> None:
        await page.route("**/agent?client_id=*", self._pass)

    def open(self) -> None:
        self._open.set()

    async def _pass(self, route: Route) -> None:
        self.came.set()
        await self._open.wait()
        await route.continue_()


async def test_what_is_sent_while_the_last_prompt_is_on_its_way_is_sent_after_it(world: PageWorld) -> None:
    """Enter would do nothing on a slow network, and the words would wait in the box unseen (B06)."""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    door = SlowDoor()
    await door.stand_in(screen.page)
    await screen.prompt("First.")
    await asyncio.wait_for(door.came.wait(), 10)
    await screen.prompt("Second.")
    await expect(screen("prompt")).to_have_value("Second.")
    door.open()
    call = await world.call()
    await expect(screen("queue-item")).to_have_count(1)
    await expect(screen("queue-item")).to_contain_text("Second.")
    await expect(screen("prompt")).to_have_value("")
    await call.say("To the first.")
    await call.end()
    await world.answer("To the second.")
    await screen.shows_once("To the second.")


async def test_words_typed_while_a_session_begins_are_in_its_box(world: PageWorld) -> None:
    """The second thought would be lost with the page that began the session."""
    client = await world.client()
    screen = await world.screen(address(client))
    await screen.is_live()
    door = SlowDoor()
    await door.stand_in(screen.page)
    await screen.prompt("First.")
    await asyncio.wait_for(door.came.wait(), 10)
    await screen("prompt").fill("A second thought")
    door.open()
    await world.answer("To the first.")
    await screen.shows_once("To the first.")
    await expect(screen("prompt")).to_have_value("A second thought")


async def test_a_stop_that_is_quicker_than_the_prompt_stops_it(world: PageWorld) -> None:
    """The run would begin a moment after it was stopped (B04 R1)."""
    client = await world.client()
    where = await world.session(client)
    screen = await world.screen(where)
    await screen.is_live()
    door = SlowDoor()
    await door.stand_in(screen.page)
    await screen.prompt("Delete everything.")
    await asyncio.wait_for(door.came.wait(), 10)
    await screen.page.keyboard.press("Control+.")
    door.open()

    async def is_stopped() -> bool:
        runs = await client.runs(where.rpartition("/")[2])
        return bool(runs) and all(run["state"] == "canceled" for run in runs)

    await until(is_stopped, "the run is cancelled")


async def test_how_an_agent_ended_is_shown_though_nobody_opened_it(world: PageWorld) -> None:
    """An agent that failed would be called finished (B72)."""
    client = await world.client()
    session_id = await client.new_session("A family")
    accepted = await client.prompt(session_id, "Divide the work.")
    await world.use("agent", {"action": "start", "prompt": "Fail at once."})
    watching = await world.screen(address(client, session_id))
    await expect(watching("agents-tree")).to_contain_text("working")
    await _play(world)
    await client.run_over(accepted["run_id"])
    await expect(watching("agents-tree")).to_contain_text("failed")
    later = await world.screen(address(client, session_id))
    await expect(later("agents-tree")).to_contain_text("failed")
    await expect(later("agents-tree")).not_to_contain_text("finished")


async def _play(world: PageWorld) -> None:
    """The agent's model refuses; its parent waits for it, and says something."""
    is_over = False
    while not is_over:
        call = await world.model.next_call()
        last = call.request["messages"][-1]
        if last["role"] == "user" and last["content"] == "Fail at once.":
            await call.fail(400, {"error": {"message": "no such model"}})
        elif "failed" in str(last["content"]):
            await call.say("It failed.")
            is_over = True
            await call.end()
        else:
            await call.tool("agent", {"action": "wait"}, id=f"wait-{len(call.request['messages'])}")
            await call.end()


async def test_whether_anybody_is_asked_is_seen_by_everyone_at_once(world: PageWorld) -> None:
    """One person would switch the questions off, and the others would not know."""
    client = await world.client()
    where = await world.session(client)
    one, other = await world.screen(where), await world.screen(where)
    await one.is_live()
    await other.is_live()
    await expect(other("not-asking")).not_to_be_visible()
    await one.choose("Stop asking")
    await one.page.get_by_role("dialog").get_by_role("button", name="Stop asking").click()
    for screen in (one, other):
        await expect(screen("not-asking")).to_be_visible()
    await other.choose("Ask for permission again")
    await expect(one("not-asking")).not_to_be_visible()


async def test_a_page_whose_shared_worker_ended_finds_another(world: PageWorld) -> None:
    """It would say "live", and show nothing new for ever (B17)."""
    client = await world.client()
    session_id = await client.new_session("Before")
    screen = await world.screen(address(client, session_id))
    await screen.is_live()
    await _end_workers(world)
    await client.ok("PUT", f"W/sessions/{session_id}", {"title": "After"})
    await expect(screen("session-item")).to_contain_text("After")
    await screen.is_live()
    await client.ok("PUT", f"W/sessions/{session_id}", {"title": "Long after"})
    await expect(screen("session-item")).to_contain_text("Long after")


async def _end_workers(world: PageWorld) -> None:
    session = await world.contexts.browser.new_browser_cdp_session()
    targets: list[dict[str, Any]] = (await session.send("Target.getTargets"))["targetInfos"]
    workers = [target for target in targets if target["type"] == "shared_worker" and world.server.url in target["url"]]
    assert workers
    for worker in workers:
        await session.send("Target.closeTarget", {"targetId": worker["targetId"]})
    await session.detach()


async def test_a_card_takes_no_tap_in_the_moment_in_which_it_appears(world: PageWorld) -> None:
    """A tap that was meant for something else would allow a command (A26)."""
    client = await world.client()
    screen: Screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.page.evaluate(
        """() => new MutationObserver(() => {
            const button = document.querySelector("[data-testid=allow-once]");
            if (!button || window.tapped !== undefined) return;
            const { x, y, width, height } = button.getBoundingClientRect();
            window.tapped = document.elementFromPoint(x + width / 2, y + height / 2)?.closest("button") === button;
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    await screen.prompt("Make a file.")
    await world.use("bash", {"command": "touch made.txt"})
    await expect(screen("permission-card")).to_be_visible()
    assert await screen.page.evaluate("window.tapped") is False
    await screen("allow-once").click()
    await world.answer("Made.")
    await screen.shows("Made.")
