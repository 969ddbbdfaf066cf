"""One cancel covers everything accepted before it on its session, and nothing accepted after it."""

import pytest
from shared_world import Client, World, of_run, story, text_of, together

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _busy(api: Client, world: World, follow_ups: int) -> tuple[str, list[str]]:
    """A session whose first run is streaming, with follow-ups behind it; all run ids in order."""
    session_id = await api.new_session()
    run_ids = [(await api.prompt(session_id, f"prompt {number}"))["run_id"] for number in range(1 + follow_ups)]
    await (await world.call()).say("Half")
    return session_id, run_ids


async def test_one_cancel_covers_the_active_run_and_every_follow_up(world: World) -> None:
    """If it failed, stop would end one run and the next would start at once: people would have to hammer it.
    B07 R4 R6"""
    api, tap = await world.attached()
    session_id, run_ids = await _busy(api, world, follow_ups=3)
    covered = await api.cancel(session_id)
    ends = [(await tap.complete(run_id)).body["cancelled"] for run_id in run_ids]
    assert (covered, ends, len(world.requests)) == (run_ids, [True] * 4, 1)


async def test_a_prompt_accepted_after_the_cancel_runs_to_its_end(world: World) -> None:
    """If it failed, a cancel would also eat the prompt that was sent because of it. B07 R5 R10"""
    api, tap = await world.attached()
    session_id, _ = await _busy(api, world, follow_ups=3)
    await api.cancel(session_id)
    later = await api.prompt(session_id, "later")
    call = await world.call()
    await call.say("Hi.")
    await call.end()
    await tap.complete(later["run_id"])
    assert (await api.story(session_id))[-2:] == ["user: later", "assistant: Hi. [end_turn]"]


async def test_a_covered_follow_up_never_streams_a_word(world: World) -> None:
    """If it failed, a cancelled prompt would be seen answering, in whatever order cancel and turn became visible.
    B07 R11"""
    api, _ = await world.attached()
    _, delta_tap = await world.attached(deltas=True)
    session_id, run_ids = await _busy(api, world, follow_ups=3)
    await api.cancel(session_id)
    await delta_tap.complete(run_ids[-1])
    for run_id in run_ids[1:]:
        assert _words(delta_tap, run_id) == []


def _words(tap: EventTap, run_id: str) -> list[str]:
    """What the run's assistant messages said, in facts and in deltas."""
    messages = [event.body for event in of_run(tap, run_id) if event.kind == "message"]
    answers = {message["id"] for message in messages if message["role"] == "assistant"}
    deltas = [event.body for event in tap.events if event.kind == "message_delta"]
    said = [delta["text"] for delta in deltas if delta["message_id"] in answers]
    return [text for text in said + [text_of(message) for message in messages if message["id"] in answers] if text]


async def test_covered_follow_ups_end_in_the_order_they_were_accepted(world: World) -> None:
    """If it failed, the conversation would show the cancelled prompts in another order than they were sent. B07"""
    api, tap = await world.attached()
    session_id, run_ids = await _busy(api, world, follow_ups=3)
    await api.cancel(session_id)
    await tap.complete(run_ids[-1])
    ends = [event.body["run_id"] for event in tap.events if event.kind == "run_complete"]
    prompts = [line for line in await api.story(session_id) if line.startswith("user")]
    assert (ends, prompts) == (run_ids, [f"user: prompt {number}" for number in range(4)])


async def test_a_cancel_among_prompts_of_other_clients_covers_exactly_those_accepted_before_it(world: World) -> None:
    """If it failed, with several people on one session a cancel would miss prompts that were there, or hit prompts that
    came after it. B07 I5 R4 R5 R9 R11"""
    clients = [await world.client() for _ in range(4)]
    tap = await world.tap(clients[0])
    session_id, _ = await _busy(clients[0], world, follow_ups=0)
    world.auto(lambda request: [{"say": "Fine."}])  # the active run stays as it is: only the cancel ends it
    wishes = [client.prompt(session_id, f"{name} {turn}") for turn in range(5) for name, client in enumerate(clients)]
    answers = await together(*wishes[:10], clients[1].cancel(session_id), *wishes[10:])
    for answer in (answer for answer in answers if isinstance(answer, dict)):
        await tap.complete(answer["run_id"])
    accepted = await clients[0].runs(session_id)
    canceled = [run["id"] for run in accepted if run["state"] == "canceled"]
    ends = ["canceled"] * len(canceled) + ["completed"] * (21 - len(canceled))
    assert ([run["state"] for run in accepted], answers[10]) == (ends, canceled)


async def test_interrupt_cancels_what_was_there_and_runs_the_new_prompt(world: World) -> None:
    """If it failed, "stop that and do this" would need two requests, and a third prompt could slip in between.
    B07 R6"""
    api, tap = await world.attached()
    session_id, _ = await _busy(api, world, follow_ups=1)
    urgent = await api.prompt(session_id, "urgent", on_busy="interrupt")
    call = await world.call()
    await call.say("At once.")
    await call.end()
    await tap.complete(urgent["run_id"])
    states = [run["state"] for run in await api.runs(session_id)]
    assert states == ["canceled", "canceled", "completed"]
    assert story(await api.messages(session_id))[-1] == "assistant: At once. [end_turn]"


async def test_cancel_leaves_the_runs_of_another_session_alone(world: World) -> None:
    """If it failed, stopping one conversation would stop the others of the workspace. B07 I5"""
    api, tap = await world.attached()
    other_session = await api.new_session()
    other_run = (await api.prompt(other_session, "other"))["run_id"]
    other_call = await world.call()
    session_id, run_ids = await _busy(api, world, follow_ups=0)
    await api.cancel(session_id)
    await tap.complete(run_ids[0])
    await other_call.say("Undisturbed.")
    await other_call.end()
    assert (await tap.complete(other_run)).body["text"] == "Undisturbed."
