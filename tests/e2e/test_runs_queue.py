"""Prompts on a busy session wait their turn: in order, visible, and each can be taken back."""

import aiohttp
import pytest
from shared_world import Client, World, in_state, together

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _prompts(api: Client, session_id: str, *prompts: str) -> list[str]:
    return [(await api.prompt(session_id, prompt))["run_id"] for prompt in prompts]


async def test_a_prompt_on_a_busy_session_is_queued_and_told_its_place(world: World) -> None:
    """If it failed, people could not send the next prompt before the last one is answered. B11"""
    api = await world.client()
    session_id = await api.new_session()
    accepted = [await api.prompt(session_id, prompt) for prompt in ("one", "two", "three")]
    told = [(answer["disposition"], answer["state"], answer["position"]) for answer in accepted]
    assert told == [("started", "accepted", 0), ("queued", "queued", 1), ("queued", "queued", 2)]


async def test_queued_prompts_run_in_order_each_with_its_own_end(world: World) -> None:
    """If it failed, answers would come for the wrong questions, or two prompts would be answered as one. B11 I4"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    world.auto(lambda request: [{"say": f"Re: {request['messages'][-1]['content']}"}])
    run_ids = await _prompts(api, session_id, "one", "two", "three")
    texts = [(await tap.complete(run_id)).body["text"] for run_id in run_ids]
    ends = [event.body["run_id"] for event in tap.events if event.kind == "run_complete"]
    assert (texts, ends) == (["Re: one", "Re: two", "Re: three"], run_ids)


async def test_a_failed_run_does_not_strand_the_queue_behind_it(world: World) -> None:
    """If it failed, one refusal of the provider would leave everything behind it waiting for ever. B11"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    failed, queued = await _prompts(api, session_id, "one", "two")
    await (await world.call()).fail(400)
    call = await world.call()
    await call.say("Hi.")
    await call.end()
    await tap.complete(queued)
    states = [run["state"] for run in await api.runs(session_id)]
    assert (states, [run["id"] for run in await api.runs(session_id)]) == (["failed", "completed"], [failed, queued])


async def test_a_failed_run_says_why_before_its_end(world: World) -> None:
    """If it failed, people would see a run stop and not know what to mend. B10 B11"""
    api, tap = await world.attached()
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    await (await world.call()).fail(400, {"error": {"message": "temperature is not supported"}})
    complete = await tap.complete(run_id)
    error = await tap.wait_for("agent_event")
    assert "temperature is not supported" in error.body["error"] == complete.body["error"]
    assert error.seq < complete.seq


async def test_a_session_never_looks_idle_between_two_queued_runs(world: World) -> None:
    """If it failed, a client that waits for a free session would step in between two prompts that belong together.
    B11 R9"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    world.auto(lambda request: [{"say": "Fine."}])
    run_ids = await _prompts(api, session_id, "one", "two", "three")
    end = await tap.complete(run_ids[-1])
    busy = [event.body["is_busy"] for event in tap.facts if event.kind == "session" and event.seq < end.seq]
    assert busy[1:] == [True] * (len(busy) - 2) + [False]


async def test_at_most_one_run_of_a_session_runs_when_many_clients_prompt_it_at_once(world: World) -> None:
    """If it failed, two runs would write into one conversation at the same time. B11 I2 I4 R7"""
    clients = [await world.client() for _ in range(5)]
    tap = await world.tap(clients[0])
    world.auto(lambda request: [{"say": "Fine."}])
    session_id = await clients[0].new_session()
    answers = await together(*(client.prompt(session_id, "go") for client in clients * 4))
    for answer in answers:
        await tap.complete(answer["run_id"])
    accepted = [run["id"] for run in await clients[0].runs(session_id)]
    turns = [(e.body["id"], e.body["state"]) for e in tap.events if e.kind == "run" and e.change == "updated"]
    assert turns == [(run_id, state) for run_id in accepted for state in ("running", "completed")]


async def test_the_queue_is_counted_and_listed_without_the_run_that_is_active(world: World) -> None:
    """If it failed, people could not see what is still going to happen. B13"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    active, *queued = await _prompts(api, session_id, "one", "two", "three")
    await tap.wait_for("run", in_state(active, "running"))
    queue = f"W/agent/sessions/{session_id}/prompts"
    count, prompts = await api.ok("GET", f"{queue}/queued"), await api.ok("GET", f"{queue}/list")
    full = await api.ok("GET", f"{queue}/list?full=1")
    assert (count, prompts, [run["id"] for run in full]) == (2, ["two", "three"], queued)


async def test_clearing_the_queue_ends_what_waits_and_lets_the_active_run_finish(world: World) -> None:
    """If it failed, clearing would stop the work, or a caller that waits for a cleared prompt would wait for ever.
    B13 R15"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    active, *queued = await _prompts(api, session_id, "one", "two", "three")
    call = await world.call()
    cleared = await api.send("POST", f"W/agent/sessions/{session_id}/prompts/clear")
    left = await api.ok("GET", f"W/agent/sessions/{session_id}/prompts/queued")
    await call.say("Whole.")
    await call.end()
    ends = [(await tap.complete(run_id)).body.get("cancelled", False) for run_id in (active, *queued)]
    assert (cleared, left, ends) == ({"canceled": queued}, 0, [False, True, True])


async def test_one_queued_prompt_can_be_removed_and_the_others_run(world: World) -> None:
    """If it failed, taking back one prompt would need clearing everybody's. B13 I4"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    run_ids = await _prompts(api, session_id, "one", "two", "three")
    call = await world.call()
    await api.send("DELETE", f"W/runs/{run_ids[1]}")
    world.auto(lambda request: [{"say": "Fine."}])
    await call.say("Fine.")
    await call.end()
    await tap.complete(run_ids[2])
    assert [run["state"] for run in await api.runs(session_id)] == ["completed", "canceled", "completed"]


async def test_a_run_that_is_active_cannot_be_removed_from_the_queue(world: World) -> None:
    """If it failed, a click a moment too late would stop a run that was only to be taken back unstarted. B13"""
    api, tap = await world.attached()
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    call = await world.call()
    status, _ = await api.call("DELETE", f"W/runs/{run_id}")
    await call.say("Undisturbed.")
    await call.end()
    complete = await tap.complete(run_id)
    assert (status, complete.body["text"]) == (409, "Undisturbed.")


async def test_a_prompt_that_would_rather_not_wait_is_refused_on_a_busy_session(world: World) -> None:
    """If it failed, a caller that must not queue would find its prompt run later, when it no longer fits. B11"""
    api = await world.client()
    session_id = await api.new_session()
    await api.prompt(session_id, "one")
    body = {"session_id": session_id, "prompt": "two", "on_busy": "reject"}
    status, _ = await api.call("POST", "W/agent", body)
    assert (status, len(await api.runs(session_id))) == (409, 1)


async def test_a_full_queue_refuses_with_a_time_to_come_back_and_loses_nothing(world: World) -> None:
    """If it failed, a client in a loop could fill the server's memory, or push out what others have waiting. B13"""
    api = await world.client()
    session_id = await api.new_session()
    answers = await together(*(api.call("POST", "W/agent", _body(session_id, number)) for number in range(120)))
    accepted = {answer["run_id"] for status, answer in answers if status == 202}
    refused = [answer for status, answer in answers if status == 429]
    kept = {run["id"] for run in await api.runs(session_id)}
    assert (len(accepted), len(refused), kept) == (100, 20, accepted)
    assert int(await _retry_after(api, _body(session_id, 121))) > 0


def _body(session_id: str, number: int) -> dict[str, str]:
    return {"session_id": session_id, "prompt": f"prompt {number}"}


async def _retry_after(api: Client, body: dict[str, str]) -> str:
    headers = {"Authorization": f"Bearer {api.token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(api.address("W/agent"), json=body) as response,
    ):
        return response.headers["Retry-After"]
