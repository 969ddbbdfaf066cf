"""What a person does in a session: queue, steer, plan, undo, attach, find, look at the time, rename, delete."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld, address
from tests.page.screen import Screen
from windlass.testing.server_process import until

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def live_screen(world: PageWorld, title: str = "A conversation") -> Screen:
    screen = await world.screen(await world.session(await world.client(), title))
    await screen.is_live()
    return screen


async def test_prompts_sent_meanwhile_wait_in_a_queue_from_which_they_can_be_taken(world: PageWorld) -> None:
    """A prompt sent too early could not be taken back (B06)."""
    screen = await live_screen(world)
    await screen.prompt("First.")
    call = await world.call()
    for text in ("Second.", "Third."):
        await screen.prompt(text)
    await expect(screen("queue-item")).to_have_count(2)
    await screen("queue-item").filter(has_text="Second.").get_by_test_id("queue-remove").click()
    await expect(screen("queue-item")).to_have_count(1)
    await call.say("Done with the first.")
    await call.end()
    assert (await world.answer("Done with the third.")).request["messages"][-1]["content"] == "Third."
    await screen.shows_once("Done with the third.")
    await expect(screen("queue-item")).to_have_count(0)


async def test_a_steered_prompt_reaches_the_run_that_goes_on(world: PageWorld) -> None:
    """Whoever sees an agent go astray could only stop it (B07)."""
    screen = await live_screen(world)
    await screen.prompt("Look around.")
    call = await world.call()
    await expect(screen("cancel")).to_be_visible()
    await screen("composer").get_by_label("Steer").check()
    await screen.prompt("Only at the top.")
    await expect(screen("prompt")).to_have_value("")
    await call.tool("ls", {"path": "."})
    await call.end()
    told = (await world.answer("Only the top.")).request["messages"]
    assert told[-1]["content"] == "Only at the top."
    await screen.shows("Only the top.")


async def test_cancel_stops_the_run_and_keeps_what_was_said(world: PageWorld) -> None:
    """An agent that goes astray could not be stopped (B04)."""
    screen = await live_screen(world)
    await screen.prompt("Count.")
    call = await world.call()
    await call.say("One, two")
    await screen.shows("One, two")
    await screen("cancel").click()
    await expect(screen("run-end")).to_contain_text("cancel", ignore_case=True)
    await screen.shows("One, two")
    await expect(screen("cancel")).not_to_be_visible()
    await call.closed()


async def test_plan_mode_is_switched_for_everyone(world: PageWorld) -> None:
    """An agent that should only plan would change files."""
    client = await world.client()
    where = await world.session(client)
    one, other = await world.screen(where), await world.screen(where)
    await one.is_live()
    await other.is_live()
    await one("plan-toggle").click()
    for screen in (one, other):
        await expect(screen("plan-toggle")).to_have_attribute("aria-pressed", "true")
    assert (await client.session(where.rpartition("/")[2]))["plan"] is True


async def test_a_session_can_begin_in_plan_mode(world: PageWorld) -> None:
    """The first run could change files before anyone had a way to say that it should only plan."""
    client = await world.client()
    screen = await world.screen(address(client))
    await screen.is_live()
    await screen("plan-toggle").click()
    await expect(screen("plan-toggle")).to_have_attribute("aria-pressed", "true")
    await screen.prompt("How would you do it?")
    call = await world.answer("Like this.")
    await screen.shows("Like this.")
    assert "write" not in [tool["function"]["name"] for tool in call.request["tools"]]
    await expect(screen("plan-toggle")).to_have_attribute("aria-pressed", "true")


async def test_a_key_leads_to_what_waits(world: PageWorld, project: Path) -> None:
    """Who uses the keyboard would have to step through everything else on the page to answer."""
    client = await world.client()
    screen = await world.screen(await world.session(client))
    await screen.is_live()
    await screen.prompt("Write it.")
    await world.use("write", {"file_path": "a.txt", "content": "words"})
    await expect(screen("permission-card")).to_be_visible()
    await screen.page.keyboard.press("Escape")
    await screen.page.keyboard.press("w")
    await expect(screen("permission-card")).to_be_focused()
    await screen.page.keyboard.press("d")
    await expect(screen("permission-card")).to_have_count(0)
    await world.answer("As you like.")
    await screen.shows("As you like.")
    assert not (project / "a.txt").exists()


async def test_undo_brings_the_files_back_and_says_which(world: PageWorld) -> None:
    """People could not get back what they had before they let an agent at it (B46)."""
    notes = world.directory / "notes.txt"
    notes.write_text("as it was\n")
    screen = await live_screen(world)
    await screen.prompt("Rewrite my notes.")
    await world.use("view", {"file_path": "notes.txt"})
    await world.use("write", {"file_path": "notes.txt", "content": "as it is now\n"})
    await expect(screen("permission-card").get_by_test_id("diff")).to_contain_text("as it is now")
    await screen("allow-once").click()
    await world.answer("Rewritten.")
    await expect(screen("run-end")).to_have_count(1)
    assert notes.read_text() == "as it is now\n"
    await screen.choose("Undo")
    await expect(screen.page.get_by_role("dialog").or_(screen("toast"))).to_contain_text("notes.txt")
    await until(lambda: notes.read_text() == "as it was\n", "the file is as it was")


async def test_a_file_is_attached_and_sent(world: PageWorld, tmp_path: Path) -> None:
    """The model would not see what the person sees (B16)."""
    (file := tmp_path / "label.txt").write_text("Ships on Friday.\n")
    screen = await live_screen(world)
    async with screen.page.expect_file_chooser() as chooser:
        await screen("attach-file").click()
    await (await chooser.value).set_files(file)
    await expect(screen("composer")).to_contain_text("label.txt")
    await screen.prompt("When?")
    assert "Ships on Friday." in str((await world.answer("On Friday.")).request["messages"][-1])
    await screen.shows("label.txt")
    await expect(screen("composer")).not_to_contain_text("label.txt")


async def test_search_finds_what_was_said_and_goes_there(world: PageWorld) -> None:
    """What was said last week could not be found again."""
    client = await world.client()
    session_id = await client.new_session("About ropes")
    await client.prompt(session_id, "What is a bowline?")
    await world.answer("A knot that makes a fixed loop.")
    screen = await world.screen(await world.session(client, "Another"))
    await screen.is_live()
    await screen.page.keyboard.press("Control+k")
    await screen("search-input").fill("fixed LOOP")
    await screen("search-hit").filter(has_text="fixed loop").first.click()
    await expect(screen("search-dialog")).not_to_be_visible()
    await screen.shows("A knot that makes a fixed loop.")
    assert session_id in screen.page.url


async def test_the_timeline_of_a_run_shows_its_steps_and_tools(world: PageWorld) -> None:
    """Nobody could see what a run spent its time on."""
    screen = await live_screen(world)
    await screen.prompt("Look around.")
    await world.use("ls", {"path": "."})
    await world.answer("Seen.")
    await screen("run-end").get_by_role("link", name="Timeline").click()
    await expect(screen("timeline")).to_be_visible()
    await expect(screen("timeline")).to_contain_text("ls")
    assert "/run/" in screen.page.url


async def test_a_session_is_renamed_in_its_header_for_everyone(world: PageWorld) -> None:
    """Ten conversations with the same name cannot be told apart."""
    screen = await live_screen(world, "Before")
    title = screen.page.get_by_role("heading", level=1)
    await title.get_by_role("button").click()
    await title.get_by_role("textbox").fill("After")
    await screen.page.keyboard.press("Enter")
    await expect(screen("session-item")).to_contain_text("After")


async def test_a_session_is_deleted_only_when_one_has_said_so_twice(world: PageWorld) -> None:
    """One wrong click would cost a conversation."""
    screen = await live_screen(world, "To be gone")
    await screen.choose("Delete")
    dialog = screen.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Keep").or_(dialog.get_by_role("button", name="Cancel")).click()
    await expect(screen("session-item")).to_have_count(1)
    await screen.choose("Delete")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(screen("session-item")).to_have_count(0)


async def test_the_theme_that_was_chosen_is_kept(world: PageWorld) -> None:
    """Whoever likes it dark would have to say so every morning."""
    screen = await live_screen(world)
    root = screen.page.locator("html")
    await screen("theme-toggle").click()
    chosen = await root.get_attribute("data-theme")
    assert chosen in ("light", "dark")
    await screen.page.reload()
    await expect(root).to_have_attribute("data-theme", str(chosen))


async def test_what_was_typed_and_not_sent_is_there_when_one_comes_back(world: PageWorld) -> None:
    """A look at another session would cost half an hour of typing."""
    client = await world.client()
    first, second = await world.session(client, "First"), await world.session(client, "Second")
    screen = await world.screen(first)
    await screen.is_live()
    await screen("prompt").fill("Half a thought")
    await screen("session-item").filter(has_text="Second").click()
    await expect(screen("prompt")).to_have_value("")
    await screen("session-item").filter(has_text="First").click()
    await expect(screen("prompt")).to_have_value("Half a thought")
    await screen.page.reload()
    await expect(screen("prompt")).to_have_value("Half a thought")
    assert second


async def test_what_a_session_has_used_is_shown(world: PageWorld) -> None:
    """The bill would be the first that is heard of it (B17)."""
    screen = await live_screen(world)
    await screen.prompt("Hello.")
    call = await world.call()
    await call.say("Hello.")
    await call.end(usage={"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234})
    await expect(screen("cost")).to_contain_text("1.2")


async def test_a_directory_is_opened_by_its_path(world: PageWorld) -> None:
    """The page would be of use only to those who also have a terminal (B31)."""
    screen = await world.screen("/")
    await screen("open-directory").first.click()
    await screen("sidebar").get_by_role("textbox", name="directory").fill(str(world.directory))
    await screen.page.keyboard.press("Enter")
    await screen.is_live()
    await screen("new-session").click()
    await screen.prompt("Hello.")
    await world.answer("Hello yourself.")
    await screen.shows("Hello yourself.")


async def test_a_link_to_a_session_that_is_gone_says_so(world: PageWorld) -> None:
    """An old bookmark would show an empty page that waits for ever."""
    client = await world.client()
    screen = await world.screen(address(client, "00000000-0000-4000-8000-000000000000"))
    world.profiles[-1].expect("404")
    await expect(screen("conversation")).to_contain_text("no such session")
