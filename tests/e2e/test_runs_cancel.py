"""Anybody may cancel, at any moment: the run ends `canceled` and leaves a conversation that says so."""

from typing import Any

import pytest
from shared_world import World, in_state, of_run, together

from windlass.testing.server_process import EventTap, until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_another_client_cancels_and_the_prompter_sees_a_canceled_message(world: World) -> None:
    """If it failed, only the sender could stop its run, or everyone would be told of an error that is none. B03"""
    prompter, tap = await world.attached()
    canceler, other_tap = await world.attached()
    session_id = await prompter.new_session()
    run_id = (await prompter.prompt(session_id, "hello"))["run_id"]
    await (await world.call()).say("Half an ans")
    covered = await canceler.cancel(session_id)
    complete = await tap.complete(run_id)
    await other_tap.complete(run_id)
    errors = [event for seen in (tap, other_tap) for event in seen.events if event.kind == "agent_event"]
    assert (covered, complete.body["cancelled"], errors) == ([run_id], True, [])
    assert [_finish(event) for event in of_run(tap, run_id) if event.kind == "message"][-1] == "canceled"
    assert (await prompter.run(run_id))["state"] == "canceled"


def _finish(event: Any) -> str:
    return "".join(part["data"]["reason"] for part in event.body["parts"] if part["type"] == "finish")


async def test_cancel_while_the_model_is_being_connected_to_leaves_a_canceled_answer(world: World) -> None:
    """If it failed, a run whose model does not answer would vanish without a trace when it is cancelled. B05 R2"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    await world.call()  # it has the request and says nothing, not even a status line
    await api.cancel(session_id)
    await tap.complete(run_id)
    assert await api.story(session_id) == ["user: hello", "assistant: [canceled]"]


async def test_cancel_in_the_middle_of_a_text_keeps_what_was_said(world: World) -> None:
    """If it failed, people would lose the half answer they were reading when they stopped it. B05"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    await (await world.call()).say("Half an ans")
    await _shown(tap, "Half an ans")
    await api.cancel(session_id)
    await tap.complete(run_id)
    assert await api.story(session_id) == ["user: hello", "assistant: Half an ans [canceled]"]


async def _shown(tap: EventTap, text: str) -> None:
    """Return when the text was seen in an unfinished message."""
    await tap.wait_for("message", lambda event: text in str(event.body["parts"]))


async def test_cancel_in_the_middle_of_a_tool_call_leaves_a_conversation_a_model_accepts(world: World) -> None:
    """If it failed, half a tool call would stand without a result, and every later prompt would be refused by the
    provider. B05 I7"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.tool_piece(0, '{"comm', id="call_half", name="bash")
    await _shown(tap, '{"comm')
    await api.cancel(session_id)
    await tap.complete(run_id)
    await api.prompt(session_id, "again")
    request = (await world.call()).request
    assert _calls(request) == _results(request)
    assert [message["content"] for message in request["messages"] if message["role"] == "user"] == ["hello", "again"]


async def test_cancel_while_a_tool_runs_gives_it_an_error_result_and_a_canceled_last_word(world: World) -> None:
    """If it failed, the conversation would not say that the command was cut off, or the next prompt would be refused
    for a call without a result. B05 I7"""
    api, tap = await world.attached(yolo=True)
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": "touch started; sleep 1000"})
    await call.end()
    await until((world.directory / "started").exists, "the command runs")
    await api.cancel(session_id)
    await tap.complete(run_id)
    ending = ["assistant: <bash> [tool_use]", "tool: error", "assistant: [canceled]"]
    assert await api.story(session_id) == ["user: hello", *ending]


async def test_cancel_while_a_run_waits_for_a_permission_ends_it_without_an_answer(world: World) -> None:
    """If it failed, a run nobody wants to answer for could not be stopped, or its command would run after all. B05"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": "touch started"})
    await call.end()
    await tap.wait_for("run", in_state(run_id, "waiting"))
    await api.cancel(session_id)
    await tap.complete(run_id)
    ending = ["assistant: <bash> [tool_use]", "tool: error", "assistant: [canceled]"]
    assert await api.story(session_id) == ["user: hello", *ending]
    assert not (world.directory / "started").exists()


def _calls(request: dict[str, Any]) -> list[str]:
    return [call["id"] for message in request["messages"] for call in message.get("tool_calls") or []]


def _results(request: dict[str, Any]) -> list[str]:
    return [message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"]


async def test_cancel_on_an_idle_session_does_nothing_at_all(world: World) -> None:
    """If it failed, a cancel that came too late would kill the next prompt, which nobody wanted to cancel.
    B06 R3 R10"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    world.auto(lambda request: [{"say": "Fine."}])
    covered = [await api.cancel(session_id)]
    first = await api.prompt(session_id, "one")
    await tap.complete(first["run_id"])
    covered += [await api.cancel(session_id), await api.cancel(session_id)]
    second = await api.prompt(session_id, "two")
    await tap.complete(second["run_id"])
    answers = ["assistant: Fine. [end_turn]"] * 2
    assert (covered, (await api.story(session_id))[1::2]) == ([[], [], []], answers)


async def test_cancel_on_an_unknown_session_covers_nothing(world: World) -> None:
    """If it failed, a client that cancels a session somebody just deleted would see an error for a wish that is
    fulfilled. B06"""
    api = await world.client()
    assert await api.cancel("ses_there_is_no_such_session") == []


async def test_two_clients_that_cancel_at_once_end_the_run_once(world: World) -> None:
    """If it failed, two people pressing stop would get an error, or the run would end twice. B08"""
    api, tap = await world.attached()
    other = await world.client()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    await (await world.call()).say("Half")
    await together(*(client.cancel(session_id) for client in (api, other) * 5))
    await tap.complete(run_id)
    assert await other.cancel(session_id) == []
    after = await api.prompt(session_id, "after")
    await (await world.call()).say("Still here.")
    assert [event.body["run_id"] for event in tap.events if event.kind == "run_complete"] == [run_id]
    assert (await api.run(after["run_id"]))["state"] == "running"


async def test_cancel_by_id_ends_that_run_and_lets_the_next_one_go_on(world: World) -> None:
    """If it failed, stopping one run would take the prompts of other people behind it along. B09 I6"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    first = await api.prompt(session_id, "one")
    second = await api.prompt(session_id, "two")
    await (await world.call()).say("Half")
    await _shown(tap, "Half")
    status, _ = await api.cancel_run(first["run_id"])
    call = await world.call()
    await call.say("Whole.")
    await call.end()
    await tap.complete(second["run_id"])
    told = ["user: one", "assistant: Half [canceled]", "user: two", "assistant: Whole. [end_turn]"]
    assert (status, await api.story(session_id)) == (202, told)


async def test_cancel_by_id_of_a_queued_run_does_not_touch_the_active_one(world: World) -> None:
    """If it failed, taking back one's own follow-up would stop the work of somebody else. B09 I6"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    first = await api.prompt(session_id, "one")
    second = await api.prompt(session_id, "two")
    call = await world.call()
    await api.cancel_run(second["run_id"])
    await call.say("Whole.")
    await call.end()
    await tap.complete(second["run_id"])
    states = [(await api.run(run["run_id"]))["state"] for run in (first, second)]
    assert (states, len(world.requests)) == (["completed", "canceled"], 1)


async def test_cancel_by_id_says_whether_the_run_is_ending_has_ended_or_never_was(world: World) -> None:
    """If it failed, a script could not tell a run it stopped from one that was over, or from a typing error. B08 B09"""
    api, tap = await world.attached()
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    await world.call()
    ending = (await api.cancel_run(run_id))[0]
    await tap.complete(run_id)
    over = await api.cancel_run(run_id)
    unknown = (await api.cancel_run("run_there_is_no_such_run"))[0]
    assert (ending, over, unknown) == (202, (200, {"state": "canceled"}), 404)
