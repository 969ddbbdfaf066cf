"""What REST says and what the stream says come from one source: they never disagree."""

import asyncio
from typing import Any

import pytest
from shared_world import Client, World, finish_of, text_of

from windlass.testing.server_process import Event, EventTap, until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _busy_hour(world: World, api: Client, tap: EventTap) -> str:
    """A session with a run that used a tool, one that failed, one that was cancelled and one that was steered."""
    session_id = await api.new_session()
    await _say(world, api, session_id, "with a tool", tool="echo one")
    failed = await api.prompt(session_id, "to fail")
    await (await world.call()).fail(400)
    await tap.complete(failed["run_id"])
    canceled = await api.prompt(session_id, "to cancel")
    await (await world.call()).say("Half")
    await api.cancel(session_id)
    await tap.complete(canceled["run_id"])
    await api.prompt(session_id, "to steer")
    call = await world.call()
    steered = await api.prompt(session_id, "also this", on_busy="steer")
    await call.say("First.")
    await call.end()
    call = await world.call()
    await call.say("Second.")
    await call.end(usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
    await tap.complete(steered["run_id"])
    return session_id


async def _say(world: World, api: Client, session_id: str, prompt: str, tool: str) -> None:
    run_id = (await api.prompt(session_id, prompt))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": tool})
    await call.end()
    call = await world.call()
    await call.say("Done.")
    await call.end()
    await api.run_over(run_id)


def _latest(tap: EventTap, kind: str) -> dict[str, dict[str, Any]]:
    """What a client that only listens has at the end: the last fact of each thing."""
    return {event.body["id"]: event.body for event in tap.facts if event.kind == kind}


async def test_the_messages_of_the_stream_are_those_of_rest(world: World) -> None:
    """If it failed, a client would show another conversation after a reload. B19"""
    api, tap = await world.attached(yolo=True)
    session_id = await _busy_hour(world, api, tap)
    told = _latest(tap, "message")
    assert await api.messages(session_id) == list(told.values())


async def test_the_runs_of_the_stream_are_those_of_rest(world: World) -> None:
    """If it failed, a run would be over in one window and going on in another. B19"""
    api, tap = await world.attached(yolo=True)
    session_id = await _busy_hour(world, api, tap)
    assert await api.runs(session_id) == list(_latest(tap, "run").values())


async def test_the_session_of_the_stream_is_that_of_rest(world: World) -> None:
    """If it failed, counts, cost and busy state would depend on whether one asks or listens. B19"""
    api, tap = await world.attached(yolo=True)
    session_id = await _busy_hour(world, api, tap)
    session = await api.session(session_id)
    assert session == _latest(tap, "session")[session_id]
    assert session["message_count"] == len(await api.messages(session_id))


async def test_rest_is_never_behind_a_fact_that_the_stream_has_told(world: World) -> None:
    """If it failed, a client that asks for more on an event would be given the state before it. B19 I12"""
    api, tap = await world.attached(yolo=True)
    world.auto(_tool_then_words)
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    asked: list[tuple[Event, dict[str, Any]]] = []
    seen = 0
    while not any(event.kind == "run_complete" for event in tap.facts[:seen]):
        await until(lambda seen=seen: len(tap.facts) > seen, "another fact")
        event = tap.facts[seen]
        seen += 1
        if event.kind == "run":
            asked.append((event, await api.run(run_id)))
        elif event.kind == "session":
            asked.append((event, await api.session(session_id)))
        elif event.kind == "message" and finish_of(event.body):
            messages = {message["id"]: message for message in await api.messages(session_id)}
            asked.append((event, messages[event.body["id"]]))
    for event, answer in asked:
        later = [other.body for other in tap.facts if other.kind == event.kind and other.seq >= event.seq]
        assert answer in later, f"{event} was followed by {answer}"
    assert len(asked) > 6


def _tool_then_words(request: dict[str, list[dict[str, str]]]) -> list[dict[str, object]]:
    if request["messages"][-1]["role"] == "tool":
        return [{"say": "Done with it."}]
    return [{"tool": "bash", "input": {"command": "echo one"}}]


async def test_the_text_so_far_is_the_same_over_rest_and_in_deltas_whenever_the_model_pauses(world: World) -> None:
    """If it failed, who joins by REST in the middle of an answer would have holes or repeats in it. B19 I16"""
    api, tap = await world.attached(deltas=True)
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    said = ""
    for word in ("One ", "two, ", "drei, ", "četyři, ", "fünf, ", "😀."):
        await call.say(word)
        said += word
        await until(lambda said=said: _assembled(tap) == said, "the stream shows the word")
        assert text_of((await api.messages(session_id))[-1]) == said


def _assembled(tap: EventTap) -> str:
    """The text of the deltas, each put where it says."""
    text = ""
    for delta in (event.body for event in tap.events if event.kind == "message_delta"):
        assert delta["at"] == len(text), f"a hole or a repeat: {delta} after {text!r}"
        text += delta["text"]
    return text


async def test_the_text_of_a_listener_without_deltas_is_that_of_rest_whenever_the_model_pauses(world: World) -> None:
    """If it failed, simple clients would show an older answer than the one that is there. B19"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    said = ""
    for word in ("One ", "two, ", "three."):
        await call.say(word)
        said += word
        shown = await tap.wait_for("message", lambda event, said=said: text_of(event.body) == said)
        assert (await api.messages(session_id))[-1] == shown.body


async def test_the_text_that_rest_gives_while_the_model_speaks_never_goes_back(world: World) -> None:
    """If it failed, a client that polls would see words disappear and come again. B19"""
    api = await world.client()
    session_id = await api.new_session()
    await api.prompt(session_id, "hello")
    call = await world.call()
    words = [f"word{number} " for number in range(300)]
    texts = [""]
    is_seen = asyncio.Event()

    async def speak() -> None:
        for word in words[:150]:
            await call.say(word)
        await is_seen.wait()  # on a busy machine all of it would be said between two looks, and nothing be shown
        for word in words[150:]:
            await call.say(word)
        await call.end()

    async with asyncio.TaskGroup() as together:
        together.create_task(speak())
        while texts[-1] != "".join(words):
            messages = await api.messages(session_id)
            texts.append(text_of(messages[-1]) if messages[-1]["role"] == "assistant" else "")
            assert texts[-1].startswith(texts[-2])
            if texts[-1]:
                is_seen.set()


async def test_the_queue_over_rest_is_what_the_stream_has_told(world: World) -> None:
    """If it failed, a client would count another number of waiting prompts than it has seen being queued. B19 B13"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    for prompt in ("one", "two", "three"):
        await api.prompt(session_id, prompt)
    removed = (await api.runs(session_id))[1]["id"]
    await api.send("DELETE", f"W/runs/{removed}")
    full = await api.ok("GET", f"W/agent/sessions/{session_id}/prompts/list?full=1")
    await tap.wait_for("run", lambda event: event.body["id"] == removed and event.body["cancel_requested"])
    waiting = [run for run in _latest(tap, "run").values() if run["state"] == "queued"]
    assert full == [run for run in waiting if not run["cancel_requested"]]
