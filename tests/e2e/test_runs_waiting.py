"""A run that waits for a person says so, and says when it goes on."""

from typing import Any

import pytest
from shared_world import Client, World, in_state

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _waiting(world: World) -> tuple[Client, EventTap, str, dict[str, Any]]:
    api, tap = await world.attached()
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    call = await world.call()
    await call.tool("bash", {"command": "echo allowed"})
    await call.end()
    return api, tap, run_id, (await tap.wait_for("permission_request")).body


async def test_a_run_that_asked_for_permission_is_waiting_on_the_stream_and_over_rest(world: World) -> None:
    """If it failed, people would watch a run that does nothing and not know that it waits for them. B15 B19"""
    api, tap, run_id, _ = await _waiting(world)
    event = await tap.wait_for("run", in_state(run_id, "waiting"))
    assert (event.body["state"], (await api.run(run_id))["state"]) == ("waiting", "waiting")
    assert [run["id"] for run in await api.ok("GET", "W/runs?state=waiting")] == [run_id]


async def test_a_run_that_was_answered_is_running_again(world: World) -> None:
    """If it failed, a run would look as if it still waited, and people would look for a question that is gone. B15"""
    api, tap, run_id, permission = await _waiting(world)
    await api.answer(permission, "allow")
    await world.call()
    states = [event.body["state"] for event in tap.events if event.kind == "run" and event.body["id"] == run_id]
    assert (states, (await api.run(run_id))["state"]) == (["accepted", "running", "waiting", "running"], "running")


async def test_a_client_that_comes_later_is_told_that_the_run_waits(world: World) -> None:
    """If it failed, who attaches from the phone to see why nothing happens would not see why. B15 B24"""
    _, _, run_id, _ = await _waiting(world)
    _, late = await world.attached()
    hello = (await late.wait_for("hello")).body
    assert [(run["id"], run["state"]) for run in hello["runs"]] == [(run_id, "waiting")]
