"""Every attached client gets every event of the workspace, in the same order, whatever becomes of the others."""

import pytest
from shared_world import Client, World, together

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _people(world: World, count: int) -> tuple[list[Client], list[EventTap]]:
    pairs = [await world.attached(yolo=True) for _ in range(count)]
    return [client for client, _ in pairs], [tap for _, tap in pairs]


async def _work(client: Client, session_id: str) -> list[str]:
    """A few prompts on a session, the last one cancelled; their run ids."""
    run_ids = [(await client.prompt(session_id, f"prompt {number}"))["run_id"] for number in range(3)]
    await client.cancel_run(run_ids[-1])
    return run_ids


def _tool_then_words(request: dict[str, list[dict[str, str]]]) -> list[dict[str, object]]:
    if request["messages"][-1]["role"] == "tool":
        return [{"say": "That was all there is."}]
    return [{"tool": "bash", "input": {"command": "echo one"}}]


async def test_five_clients_get_the_same_events_in_the_same_order(world: World) -> None:
    """If it failed, people looking at the same work would see different things. B21"""
    clients, taps = await _people(world, 5)
    world.auto(_tool_then_words)
    sessions = [await client.new_session() for client in clients]
    worked = await together(*(_work(client, session_id) for client, session_id in zip(clients, sessions, strict=True)))
    run_ids = [run_id for runs in worked for run_id in runs]
    for tap in taps:
        for run_id in run_ids:
            await tap.complete(run_id)
    for tap in taps[1:]:
        assert tap.facts == taps[0].facts


async def test_the_events_of_a_client_have_no_gap_and_no_repeat(world: World) -> None:
    """If it failed, a client could not tell whether it missed something. B21 I12 I13"""
    (client, *_), (tap, *_) = await _people(world, 2)
    world.auto(_tool_then_words)
    run_ids = await _work(client, await client.new_session())
    for run_id in run_ids:
        await tap.complete(run_id)
    numbers = [event.seq for event in tap.facts]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_killing_one_stream_in_the_middle_does_not_disturb_the_others(world: World) -> None:
    """If it failed, one person's broken network would cost everyone else events. B22"""
    (client, *_), (victim, *others) = await _people(world, 5)
    session_id = await client.new_session()
    run_id = (await client.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await call.say("Half ")
    await victim.wait_for("message", lambda event: "Half" in str(event.body))
    await victim.drop()
    await call.say("and half.")
    await call.end()
    texts = [(await tap.complete(run_id)).body["text"] for tap in others]
    assert (texts, victim.over) == (["Half and half."] * 4, True)
    assert all(tap.facts == others[0].facts for tap in others)


async def test_a_client_whose_stream_was_killed_goes_on_where_it_was(world: World) -> None:
    """If it failed, a network blip would leave a hole in what a person sees. B22 I13"""
    (client, _), (victim, tap) = await _people(world, 2)
    session_id = await client.new_session()
    run_id = (await client.prompt(session_id, "hello"))["run_id"]
    call = await world.call()
    await victim.wait_for("run", lambda event: event.body["state"] == "running")
    await victim.drop()
    await call.say("Hi.")
    await call.end()
    await tap.complete(run_id)
    resumed = await world.tap(client, after=victim.facts[-1].id)
    await resumed.complete(run_id)
    assert victim.facts + resumed.facts == tap.facts
