"""Two people look at one session, each in a browser of their own."""

import pytest
from playwright.async_api import expect

from tests.page.page_world import PageWorld
from tests.page.screen import Screen

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def two_people(world: PageWorld) -> tuple[Screen, Screen]:
    """Both have the same session open, and are attached."""
    client = await world.client()
    where = await world.session(client)
    one, other = [await world.screen(where) for _ in range(2)]
    await one.is_live()
    await other.is_live()
    return one, other


async def test_what_one_types_both_see_while_it_is_answered(world: PageWorld) -> None:
    """People who share a session would each see half of it (B17 B19)."""
    one, other = await two_people(world)
    await one.prompt("What is a windlass?")
    call = await world.call()
    await call.say("A windlass ")
    for screen in (one, other):
        await screen.shows("What is a windlass?", "A windlass")
    await call.say("moves heavy weights.")
    for screen in (one, other):
        await screen.shows("A windlass moves heavy weights.")
    await call.end()
    for screen in (one, other):
        await expect(screen("run-end")).to_have_count(1)
        await screen.shows_once("A windlass moves heavy weights.")
        await screen.shows_once("What is a windlass?")


async def test_a_permission_is_asked_on_both_and_who_answered_is_said(world: PageWorld) -> None:
    """People would click on cards that nobody waits for any more (B25 I9)."""
    one, other = await two_people(world)
    await one.prompt("Make a file.")
    await (call := await world.call()).tool("bash", {"command": "touch made.txt"})
    await call.end()
    for screen in (one, other):
        await expect(screen("permission-card")).to_contain_text("touch made.txt")
    await other("allow-once").click()
    for screen in (one, other):
        await expect(screen("permission-card")).to_have_count(0)
    await expect(one("answered")).to_contain_text("Allowed by browser-")
    await expect(other("answered")).to_contain_text("Allowed by you")
    await world.answer("It is there.")
    await one.shows("It is there.")
    assert (world.directory / "made.txt").exists()


async def test_a_denied_permission_runs_nothing(world: PageWorld) -> None:
    """A person who says no would have said nothing (B26)."""
    one, other = await two_people(world)
    await other.prompt("Make a file.")
    await (call := await world.call()).tool("bash", {"command": "touch made.txt"})
    await call.end()
    await one("deny").click()
    await expect(other("permission-card")).to_have_count(0)
    await expect(other("answered")).to_contain_text("Denied by")
    await world.answer("Then not.")
    await other.shows("Then not.")
    assert not (world.directory / "made.txt").exists()


async def test_a_question_is_asked_on_both_and_the_answer_of_one_reaches_the_model(world: PageWorld) -> None:
    """An agent would wait for an answer that someone gave (B28 I9)."""
    one, other = await two_people(world)
    await one.prompt("Choose a database.")
    choices = [{"label": "SQLite"}, {"label": "PostgreSQL"}]
    questions = [
        {"type": "single_choice", "question": "Which database?", "choices": choices},
        {"type": "free_text", "question": "Called what?"},
    ]
    await (call := await world.call()).tool("question", {"questions": questions})
    await call.end()
    for screen in (one, other):
        await expect(screen("question-card")).to_contain_text("Which database?")
    card = other("question-card")
    await card.get_by_label("PostgreSQL").check()
    await card.get_by_label("Called what?").fill("Anchor")
    await other("answer-send").click()
    for screen in (one, other):
        await expect(screen("question-card")).to_have_count(0)
        await expect(screen("answered")).to_have_count(1)
    told = (await world.answer("So be it.")).request["messages"][-1]["content"]
    assert "PostgreSQL" in told and "Anchor" in told


async def test_who_else_watches_is_shown(world: PageWorld) -> None:
    """People would think themselves alone (B20)."""
    one, other = await two_people(world)
    await expect(one("watchers")).to_contain_text("2")
    await other.page.close()
    await expect(one("watchers")).not_to_contain_text("2")
