"""Clients that meet each other, or the end of their own request, at an awkward moment."""

import asyncio
import json
from pathlib import Path

import pytest
from shared_world import Client, World, of_run, together

from windlass.testing.server_process import EventTap, until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_goodbye_of_a_client_whose_create_was_never_answered_closes_what_it_opened(
    world: World, tmp_path: Path
) -> None:
    """If it failed, an answer lost on the way would leave a workspace open that its client cannot even name. R40"""
    directory = tmp_path / "unanswered"
    directory.mkdir()
    lost, onlooker = await world.client(), await world.client()

    async def is_open() -> bool:
        return str(directory) in [workspace["path"] for workspace in await onlooker.ok("GET", "/v1/workspaces")]

    await _create_and_hang_up(lost, directory)
    await until(is_open, "the create has arrived")
    await onlooker.ok("DELETE", f"/v1/clients/{lost.client_id}")
    assert not await is_open()


async def _create_and_hang_up(api: Client, directory: Path) -> None:
    host, _, port = api.server.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    content = json.dumps({"path": str(directory), "client_id": api.client_id}).encode()
    head = f"POST /v1/workspaces HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {api.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_a_stream_opened_in_the_middle_of_everything_begins_right_behind_its_greeting(world: World) -> None:
    """If it failed, what happens between the greeting and the first event would be seen by nobody, or twice. R48 I13"""
    busy = await world.client()
    joiners = [await world.client() for _ in range(8)]
    flood = asyncio.create_task(_sessions_until_told(busy, stop := asyncio.Event()))
    taps = await together(*(world.tap(joiner) for joiner in joiners))
    stop.set()
    await flood
    last = await busy.new_session("the last one")
    for tap in taps:
        await tap.wait_for("session", lambda event: event.body["id"] == last)
        greeting, first = tap.events[0], tap.facts[0]
        assert greeting.kind == "hello"
        assert [fact.seq for fact in tap.facts] == list(range(greeting.body["head"] + 1, tap.facts[-1].seq + 1))
        assert tap.facts[-1].seq > first.seq, "nothing happened while it attached: this shows nothing"


async def _sessions_until_told(api: Client, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await together(*(api.new_session() for _ in range(4)))


async def test_a_model_that_hangs_up_once_and_then_answers_ends_the_run_once(world: World) -> None:
    """If it failed, the end of an attempt would be told as the end of the run, ahead of the answer. R20"""
    api, tap = await world.attached()
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    (await world.call()).drop()
    call = await world.call()
    await call.say("Second try.")
    await call.end()
    complete = await tap.complete(run_id)
    kinds = [event.kind for event in of_run(tap, run_id)]
    assert (complete.body["text"], kinds.count("run_complete"), kinds.count("agent_event")) == ("Second try.", 1, 0)


async def test_asking_is_switched_off_for_the_next_question_and_not_for_the_one_that_waits(world: World) -> None:
    """If it failed, a switch meant for later would allow what somebody is just reading. R47 I10"""
    api, tap = await world.attached()
    waiting = await _asks_for(world, api, tap, await api.new_session(), "echo first > first")
    await api.send("POST", "W/permissions/skip", {"skip": True})
    session_id = await api.new_session()
    await api.prompt(session_id, "go on")
    await _ask(world, "echo second > second")
    await (await world.call()).end()  # it ran, and nobody was asked
    await api.send("POST", "W/permissions/skip", {"skip": False})
    third = await _asks_for(world, api, tap, await api.new_session(), "echo third > third")
    assert [permission["id"] for permission in await api.permissions()] == [waiting, third]
    assert [path.name for path in world.directory.iterdir()] == ["second"]


async def _asks_for(world: World, api: Client, tap: EventTap, session_id: str, command: str) -> str:
    """Let the model ask for a command; the id of the question people are asked."""
    await api.prompt(session_id, "go on")
    await _ask(world, command)
    asked = await tap.wait_for("permission_request", lambda event: event.body["session_id"] == session_id)
    return str(asked.body["id"])


async def _ask(world: World, command: str) -> None:
    call = await world.call()
    await call.tool("bash", {"command": command})
    await call.end()
