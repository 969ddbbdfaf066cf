"""A cancel that comes before a run has begun is not lost: the run ends `canceled` and calls no model."""

import asyncio
import json

import pytest
from shared_world import Client, World, finish_of, together

from windlass.testing.model_call import CallGone, ModelCall

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_queued_run_that_is_cancelled_never_calls_the_model(world: World) -> None:
    """If it failed, a prompt taken back before its turn would still be sent to the model, and paid for. B04 R1"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    await api.prompt(session_id, "active")
    queued = await api.prompt(session_id, "queued")
    await api.cancel(session_id)
    await tap.complete(queued["run_id"])
    prompts = [request["messages"][-1]["content"] for request in world.requests]
    assert "queued" not in prompts


async def test_a_run_cancelled_before_its_turn_leaves_its_prompt_and_an_empty_canceled_answer(world: World) -> None:
    """If it failed, a prompt that was accepted would be missing from the conversation, or stand there without an
    answer. B04 R15"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    await api.prompt(session_id, "active")
    queued = await api.prompt(session_id, "queued")
    await api.cancel(session_id)
    await tap.complete(queued["run_id"])
    assert (await api.story(session_id))[2:] == ["user: queued", "assistant: [canceled]"]


async def test_cancel_right_behind_the_202_always_ends_the_run_as_canceled(world: World) -> None:
    """If it failed, a quick Esc after Enter would be swallowed, and the run would go on to its end. B04 B05 R1 R2"""
    api, _ = await world.attached()
    session_ids = [await api.new_session() for _ in range(20)]
    stories = await together(*(_prompt_and_cancel(api, session_id) for session_id in session_ids))
    assert stories == [["user: quick", "assistant: [canceled]"]] * 20


async def _prompt_and_cancel(api: Client, session_id: str) -> list[str]:
    run_id = (await api.prompt(session_id, "quick"))["run_id"]
    await api.cancel(session_id)
    await api.run_over(run_id)
    return await api.story(session_id)


async def test_a_cancel_sent_with_the_prompt_before_its_answer_finds_the_run(world: World) -> None:
    """If it failed, a client that does not wait for the 202 before it sends the cancel would have an unstoppable run.
    B04 R1"""
    api = await world.client()
    session_ids = [await api.new_session() for _ in range(10)]
    await together(*(_pipeline(api, session_id) for session_id in session_ids))
    states = [(await api.run_over(f"piped-{session_id[:20]}"))["state"] for session_id in session_ids]
    assert states == ["canceled"] * 10


async def _pipeline(api: Client, session_id: str) -> None:
    """Prompt and cancel in one write on one connection: the server has the second when it answers the first."""
    host, _, port = api.server.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    prompt = {"session_id": session_id, "prompt": "quick", "run_id": f"piped-{session_id[:20]}"}
    writer.write(_request(api, "W/agent", prompt, "keep-alive"))
    writer.write(_request(api, f"W/agent/sessions/{session_id}/cancel", {}, "close"))
    answers = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answers.count(b"HTTP/1.1 202") == 1 and answers.count(b"HTTP/1.1 200") == 1, answers


def _request(api: Client, path: str, body: object, connection: str) -> bytes:
    host = api.server.url.removeprefix("http://")
    content = json.dumps(body).encode()
    head = f"POST {api.address(path).removeprefix(api.server.url)} HTTP/1.1\r\nHost: {host}\r\n"
    head += f"Authorization: Bearer {api.token}\r\nConnection: {connection}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


async def test_a_cancel_that_meets_the_end_of_the_run_leaves_one_end_and_spares_the_next(world: World) -> None:
    """If it failed, a cancel that loses the race with the last word would be reported twice, or would be kept for the
    next prompt. B08 B10 R8 R10"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    for number in range(10):
        raced = await api.prompt(session_id, f"raced {number}")
        call = await world.call()
        await call.say("Done.")
        covered, _ = await together(api.cancel(session_id), _end_quietly(call))
        await tap.complete(raced["run_id"])
        last = (await api.messages(session_id))[-1]
        # A cancel that was told it covers the run must win over the model's last word (I5).
        assert finish_of(last) == ("canceled" if covered else "end_turn")
        after = await api.prompt(session_id, f"after {number}")
        call = await world.call()
        await call.say("Undisturbed.")
        await call.end()
        assert (await tap.complete(after["run_id"])).body["text"] == "Undisturbed."
    ends = [event.body["run_id"] for event in tap.events if event.kind == "run_complete"]
    assert len(ends) == len(set(ends)) == 20


async def _end_quietly(call: ModelCall) -> None:
    try:
        await call.end()
    except (CallGone, ConnectionError):
        pass  # the cancel was faster and has cut the connection
