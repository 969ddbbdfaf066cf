"""A prompt is accepted at once, and from then on the run belongs to the server."""

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest
from shared_world import Client, World, finish_of, of_run

from windlass.testing.server_process import until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_prompt_is_accepted_while_the_model_has_not_said_a_word(world: World) -> None:
    """If it failed, a prompt would hold its sender until the answer is there, and a slow model would look like a dead
    server. B01"""
    api = await world.client()
    accepted = await api.prompt(await api.new_session(), "hello")
    assert (accepted["state"], accepted["disposition"], accepted["position"]) == ("accepted", "started", 0)


async def test_a_run_outlives_the_50_ms_its_sender_gave_the_request(world: World) -> None:
    """If it failed, a client with a short timeout would see an error, or would kill its own run with it. B01"""
    api, tap = await world.attached()
    body = {"session_id": await api.new_session(), "prompt": "hello", "run_id": "impatient"}
    answer = await _answer_within_50_ms(api, body)
    answered = time.monotonic()
    call = await world.call()
    await until(lambda: time.monotonic() > answered + 0.05, "the sender's patience is over")
    await call.say("Hi.")
    await call.end()
    complete = await tap.complete("impatient")
    assert (answer[0], complete.body["text"]) == (202, "Hi.")


async def _answer_within_50_ms(api: Client, body: dict[str, Any]) -> tuple[int, Any]:
    """The same request again when this machine was too busy to answer in time: what waits for the run never does."""
    patience = aiohttp.ClientTimeout(total=0.05)
    for _ in range(10):
        try:
            return await api.call("POST", "W/agent", body, timeout=patience)
        except TimeoutError:
            continue
    raise AssertionError("not once was the prompt answered within 50 ms")


async def test_a_run_goes_on_when_its_sender_leaves_and_the_others_see_it_end(world: World) -> None:
    """If it failed, closing the laptop that sent a prompt would end the work everybody else is watching. B02"""
    _, tap = await world.attached()
    prompter, own_tap = await world.attached()
    run_id = (await prompter.prompt(await prompter.new_session(), "hello"))["run_id"]
    call = await world.call()
    await call.say("Half ")
    await own_tap.drop()
    await prompter.hang_up()
    await call.say("and half.")
    await call.end()
    complete = await tap.complete(run_id)
    assert complete.body["text"] == "Half and half."


async def test_a_run_goes_on_when_its_sender_was_the_only_one_and_has_said_goodbye(world: World) -> None:
    """If it failed, nobody could start a long job, close everything and read the result in the morning. B02 B33"""
    prompter, tap = await world.attached()
    session_id = await prompter.new_session()
    run_id = (await prompter.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await prompter.send("DELETE", f"/v1/clients/{prompter.client_id}")
    await tap.ended()
    await call.say("Done alone.")
    await call.end()
    later = await world.client()
    await later.run_over(run_id)
    assert await later.story(session_id) == ["user: hello", "assistant: Done alone. [end_turn]"]


async def test_a_run_whose_sender_never_read_the_answer_is_there_when_it_asks_again(world: World) -> None:
    """If it failed, a connection lost at the wrong moment would lose the prompt, or run it twice. B02 B12 R25"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    body = {"session_id": session_id, "prompt": "hello", "run_id": "unread"}
    await _send_and_hang_up(api, body)
    call = await world.call()
    again = await api.prompt(**body)
    await call.say("Hi.")
    await call.end()
    await tap.complete("unread")
    assert (again["state"], len(await api.runs(session_id)), len(world.requests)) == ("running", 1, 1)


async def _send_and_hang_up(api: Client, body: dict[str, Any]) -> None:
    """A whole request, and the connection closed without looking at what comes back."""
    host, _, port = api.server.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps(body).encode()
    path = api.address("W/agent").removeprefix(api.server.url)
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {api.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_a_run_ends_once_and_after_all_of_its_messages(world: World) -> None:
    """If it failed, a client that waits for the end would miss the last words, or act on an end twice. B10 R21"""
    api, tap = await world.attached(yolo=True)
    session_id = await api.new_session()
    completed = await api.prompt(session_id, "use a tool")
    canceled = await api.prompt(session_id, "to be cancelled")
    failed = await api.prompt(session_id, "to fail")
    call = await world.call()
    await call.tool("bash", {"command": "echo done"})
    await call.end()
    call = await world.call()
    await call.say("Done.")
    await call.end()
    await tap.complete(completed["run_id"])
    await (await world.call()).say("Never to be ended")
    await api.cancel_run(canceled["run_id"])
    await (await world.call()).fail(400)
    await tap.complete(failed["run_id"])
    for run in (completed, canceled, failed):
        kinds = [event.kind for event in of_run(tap, run["run_id"])]
        assert kinds.count("run_complete") == 1 and kinds[-1] == "run_complete", f"{run}: {kinds}"


async def test_the_end_of_a_run_holds_its_answer_and_names_the_finished_message(world: World) -> None:
    """If it failed, a client would have to guess whether the text it has is all of it. B10 R21"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.say("The answer")
    await call.end()
    complete = (await tap.complete(run_id)).body
    last = [event.body for event in of_run(tap, run_id) if event.kind == "message"][-1]
    assert (complete["text"], complete["message_id"], finish_of(last)) == ("The answer", last["id"], "end_turn")


async def test_a_session_is_no_longer_busy_when_its_run_is_said_to_be_over(world: World) -> None:
    """If it failed, a client that sends the next prompt on `run_complete` would find the session busy. B10 B19 R23"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    assert (await api.session(session_id))["is_busy"] is True
    await call.say("Hi.")
    await call.end()
    complete = await tap.complete(run_id)
    before = [event for event in tap.facts if event.kind == "session" and event.seq < complete.seq]
    told = before[-1].body["is_busy"]
    accepted = await api.prompt(session_id, "next", on_busy="reject")
    assert (told, accepted["disposition"]) == (False, "started")
