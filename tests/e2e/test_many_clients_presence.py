"""Who looks at which session, and which sessions are busy."""

import pytest
from shared_world import Client, World

from windlass.testing.server_process import until

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _look(client: Client, session_id: str) -> None:
    await client.send("POST", "W/current-session", {"session_id": session_id})


async def _attached(client: Client) -> dict[str, int]:
    return {session["id"]: session["attached_clients"] for session in await client.ok("GET", "W/sessions")}


async def test_a_session_lists_how_many_clients_look_at_it(world: World) -> None:
    """If it failed, nobody could see that somebody else is reading along. B29"""
    one, _ = await world.attached()
    other, _ = await world.attached()
    seen, unseen = await one.new_session(), await one.new_session()
    await _look(one, seen)
    await _look(other, seen)
    assert await _attached(one) == {seen: 2, unseen: 0}


async def test_a_client_that_turns_to_another_session_is_counted_there(world: World) -> None:
    """If it failed, a person would seem to be in every session they ever opened. B29"""
    api, _ = await world.attached()
    first, second = await api.new_session(), await api.new_session()
    await _look(api, first)
    await _look(api, second)
    turned = await _attached(api)
    await _look(api, "")
    assert (turned, await _attached(api)) == ({first: 0, second: 1}, {first: 0, second: 0})


async def test_everyone_is_told_when_somebody_comes_to_a_session_and_leaves_it(world: World) -> None:
    """If it failed, the others would have to ask again and again who is there. B29"""
    api, _ = await world.attached()
    _, tap = await world.attached()
    session_id = await api.new_session()
    await _look(api, session_id)
    await tap.wait_for("presence")
    await _look(api, "")
    await tap.wait_for("presence", lambda event: event.body["attached_clients"] == 0)
    told = [event.body for event in tap.events if event.kind == "presence"]
    assert told == [{"session_id": session_id, "attached_clients": count} for count in (1, 0)]


async def test_a_client_whose_stream_drops_is_no_longer_counted(world: World) -> None:
    """If it failed, a session would look attended by people who are long gone. B29 B22"""
    api, _ = await world.attached()
    gone, gone_tap = await world.attached()
    session_id = await api.new_session()
    await _look(gone, session_id)
    await gone_tap.drop()

    async def is_alone() -> bool:
        return (await _attached(api))[session_id] == 0

    await until(is_alone, "the client is no longer counted")


async def test_a_client_without_a_stream_cannot_be_present(world: World) -> None:
    """If it failed, a script that calls once would be shown as a person who watches. B29"""
    api = await world.client()
    session_id = await api.new_session()
    body = {"session_id": session_id}
    status, _ = await api.call("POST", f"W/current-session?client_id={api.client_id}", body)
    assert (status, await _attached(api)) == (409, {session_id: 0})


async def test_a_session_is_listed_as_busy_exactly_while_a_run_of_it_is_not_over(world: World) -> None:
    """If it failed, people would wait for a session that is free, or disturb one that is not. B29 R23"""
    api, tap = await world.attached()
    busy, idle = await api.new_session(), await api.new_session()
    before = await _busy(api)
    run_id = (await api.prompt(busy, "hello"))["run_id"]
    call = await world.call()
    during = await _busy(api)
    await call.say("Hi.")
    await call.end()
    await tap.complete(run_id)
    after = await _busy(api)
    assert (before, during, after) == ({busy: False, idle: False}, {busy: True, idle: False}, before)


async def _busy(client: Client) -> dict[str, bool]:
    return {session["id"]: session["is_busy"] for session in await client.ok("GET", "W/sessions")}
