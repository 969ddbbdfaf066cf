"""An agent asks the people: everyone sees it, one answers, and a run that is cancelled takes its question back."""

from typing import Any

import pytest
from shared_world import Client, World, together

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTIONS = [
    {"type": "single_choice", "question": "Which database?", "choices": [{"label": "SQLite"}, {"label": "PostgreSQL"}]},
    {"type": "free_text", "question": "Called what?"},
]
ANSWERS = [{"request_id": "q1", "selected_ids": ["c2"]}, {"request_id": "q2", "fill_in_text": "Anchor"}]


async def ask(world: World, api: Client, tap: EventTap) -> dict[str, Any]:
    """A run whose model asks the user; the batch as everyone sees it."""
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    call = await world.call()
    await call.tool("question", {"questions": QUESTIONS})
    await call.end()
    event = await tap.wait_for("question_batch_request", lambda event: event.body["run_id"] == run_id)
    return event.body


async def answer(api: Client, batch: dict[str, Any], responses: list[dict[str, Any]] = ANSWERS) -> bool:
    body = {"batch_request_id": batch["id"], "responses": responses}
    return bool((await api.send("POST", "W/questions/answer", body))["resolved"])


async def outcome(tap: EventTap, batch: dict[str, Any]) -> dict[str, Any]:
    event = await tap.wait_for("question_batch_notification", lambda e: e.body["batch_id"] == batch["id"])
    return event.body


async def test_one_client_answers_and_the_other_sees_it_and_is_too_late(world: World) -> None:
    """If it failed, the agent would hear something else than what the first person said, or the second would think
    that it was them. B28 B23 B24 B15 I9"""
    api, tap = await world.attached()
    other, other_tap = await world.attached()
    batch = await ask(world, api, tap)
    assert (await other_tap.wait_for("question_batch_request")).body == batch
    assert (await api.run(batch["run_id"]))["state"] == "waiting"
    _, late_tap = await world.attached()
    assert (await late_tap.wait_for("hello")).body["questions"] == [batch] == await api.ok("GET", "W/questions")
    assert [await answer(other, batch), await answer(api, batch)] == [True, False]
    end = await outcome(tap, batch)
    assert (end["outcome"], end["by"]["client_id"]) == ("answered", other.client_id)
    assert end["responses"] == ANSWERS
    told = (await world.call()).request["messages"][-1]["content"]
    assert "PostgreSQL" in told and "Anchor" in told
    assert await api.ok("GET", "W/questions") == []


async def test_of_answers_at_the_same_moment_exactly_one_decides(world: World) -> None:
    """If it failed, two people would each believe that they answered. I9 A17"""
    clients = [await world.client() for _ in range(3)]
    tap = await world.tap(clients[0])
    batch = await ask(world, clients[0], tap)
    told = await together(*(answer(client, batch) for client in clients))
    assert told.count(True) == 1
    assert (await outcome(tap, batch))["by"]["client_id"] == clients[told.index(True)].client_id
    await world.call()


async def test_the_question_of_a_cancelled_run_is_withdrawn_everywhere(world: World) -> None:
    """If it failed, people would go on looking at a question whose answer does nothing. B25 I11"""
    api, tap = await world.attached()
    _, other_tap = await world.attached()
    batch = await ask(world, api, tap)
    await api.cancel(batch["session_id"])
    assert [(await outcome(seen, batch))["outcome"] for seen in (tap, other_tap)] == ["withdrawn"] * 2
    assert await answer(api, batch) is False
    await tap.complete(batch["run_id"])
    assert (await api.run(batch["run_id"]))["state"] == "canceled"


async def test_who_declines_is_told_of_and_no_prompt_or_steering_answers(world: World) -> None:
    """If it failed, words meant for the conversation would be taken for an answer. B28"""
    api, tap = await world.attached()
    batch = await ask(world, api, tap)
    for on_busy in ("steer", "enqueue"):
        await api.prompt(batch["session_id"], "SQLite", on_busy=on_busy)
    assert [waiting["id"] for waiting in await api.ok("GET", "W/questions")] == [batch["id"]]
    assert await api.send("POST", "W/questions/cancel", {"batch_request_id": batch["id"]}) == {"resolved": True}
    assert (await outcome(tap, batch))["outcome"] == "canceled"
    messages = (await world.call()).request["messages"]
    assert any("Declined" in str(message["content"]) for message in messages if message["role"] == "tool")


async def test_the_list_of_what_is_to_be_done_is_shown_with_the_session(world: World) -> None:
    """If it failed, people could not see what the agent means to do. B19"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    await call.tool("todos", {"todos": [{"content": "Read", "status": "in_progress", "active_form": "Reading"}]})
    await call.end()
    seen = await tap.wait_for("session", lambda event: bool(event.body["todos"]))
    await world.call()
    expected = [{"content": "Read", "status": "in_progress", "active_form": "Reading"}]
    assert seen.body["todos"] == (await api.session(session_id))["todos"] == expected
