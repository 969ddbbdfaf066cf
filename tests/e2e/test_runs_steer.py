"""A steered prompt enters the run that is active, at its next step; and it ends with that run."""

import pytest
from shared_world import Client, World, of_run, together

from windlass.testing.model_call import CallGone, ModelCall
from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


class Steered:
    """A run R whose model is in the middle of its first answer, and a prompt S that was steered into it."""

    def __init__(self, api: Client, tap: EventTap, session_id: str, call: ModelCall, run_id: str, steer: str) -> None:
        self.api = api
        self.tap = tap
        self.session_id = session_id
        self.call = call
        self.run_id = run_id
        self.steer = steer

    @classmethod
    async def in_(cls, world: World) -> "Steered":
        api, tap = await world.attached(yolo=True)
        session_id = await api.new_session()
        run_id = (await api.prompt(session_id, "begin"))["run_id"]
        call = await world.call()
        steer = (await api.prompt(session_id, "also this", on_busy="steer"))["run_id"]
        return cls(api, tap, session_id, call, run_id, steer)


async def _say(call: ModelCall, text: str) -> None:
    await call.say(text)
    await call.end()


async def test_a_steered_prompt_is_told_which_run_takes_it(world: World) -> None:
    """If it failed, a caller could not tell whether its words reach the run it sees. B14"""
    api = await world.client()
    session_id = await api.new_session()
    active = await api.prompt(session_id, "begin")
    await world.call()
    steered = await api.prompt(session_id, "also this", on_busy="steer")
    assert (steered["disposition"], steered["into"]) == ("steered", active["run_id"])
    assert steered["run_id"] != active["run_id"]


async def test_a_steered_prompt_enters_the_conversation_between_two_steps(world: World) -> None:
    """If it failed, people could not correct a run while it works: it would hear them only after its end. B14"""
    s = await Steered.in_(world)
    await s.call.tool("bash", {"command": "echo one"})
    await s.call.end()
    second = await world.call()
    result, steered = second.request["messages"][-2:]
    await _say(second, "Both done.")
    await s.tap.complete(s.steer)
    assert (result["role"], steered["role"], steered["content"]) == ("tool", "user", "also this")
    lines = ["user: begin", "assistant: <bash> [tool_use]", "tool: ok", "user: also this"]
    assert await s.api.story(s.session_id) == [*lines, "assistant: Both done. [end_turn]"]


async def test_a_model_that_ends_its_turn_goes_on_when_a_steered_prompt_waits(world: World) -> None:
    """If it failed, a correction that came with the last word would be answered by nobody. B14"""
    s = await Steered.in_(world)
    await _say(s.call, "Done.")
    await _say(await world.call(), "That too.")
    await s.tap.complete(s.steer)
    lines = ["user: begin", "assistant: Done. [end_turn]", "user: also this", "assistant: That too. [end_turn]"]
    assert await s.api.story(s.session_id) == lines


async def test_a_steered_run_ends_right_after_the_run_that_took_it_with_the_same_outcome(world: World) -> None:
    """If it failed, whoever waits for the steered prompt would wait for ever, or be told something else than
    happened. B14 B10 R14"""
    s = await Steered.in_(world)
    await _say(s.call, "Done.")
    await _say(await world.call(), "That too.")
    end = await s.tap.complete(s.steer)
    facts = [event for event in s.tap.facts if event.kind in ("run", "run_complete")][-4:]
    order = [(event.kind, event.body.get("run_id") or event.body["id"]) for event in facts]
    both = [("run", s.run_id), ("run_complete", s.run_id), ("run", s.steer), ("run_complete", s.steer)]
    assert (order, end.body["text"]) == (both, "That too.")
    assert [facts[0].body["state"], facts[2].body["state"]] == ["completed", "completed"]
    assert [event.seq for event in facts] == list(range(facts[0].seq, facts[0].seq + 4))


async def test_a_steered_run_fails_with_the_run_that_took_it(world: World) -> None:
    """If it failed, a steered prompt would be called answered though the model refused. B14 R14"""
    s = await Steered.in_(world)
    await _say(s.call, "Done.")
    await (await world.call()).fail(400)
    await s.tap.complete(s.steer)
    assert [run["state"] for run in await s.api.runs(s.session_id)] == ["failed", "failed"]


async def test_cancel_of_the_session_covers_a_steered_prompt_that_still_waits(world: World) -> None:
    """If it failed, stop would leave a prompt behind that starts by itself a moment later. B14 B07"""
    s = await Steered.in_(world)
    await s.api.cancel(s.session_id)
    await s.tap.complete(s.steer)
    assert [run["state"] for run in await s.api.runs(s.session_id)] == ["canceled", "canceled"]
    assert (await s.api.story(s.session_id))[-2:] == ["user: also this", "assistant: [canceled]"]


async def test_cancel_of_the_run_alone_leaves_a_steered_prompt_to_run_as_an_ordinary_one(world: World) -> None:
    """If it failed, stopping one run by its id would take somebody else's prompt along, or lose it. B14 B09 I6"""
    s = await Steered.in_(world)
    await s.api.cancel_run(s.run_id)
    await _say(await world.call(), "At last.")
    await s.tap.complete(s.steer)
    run = await s.api.run(s.steer)
    lines = ["user: begin", "assistant: [canceled]", "user: also this", "assistant: At last. [end_turn]"]
    assert await s.api.story(s.session_id) == lines
    assert (run["state"], run["disposition"], run.get("into")) == ("completed", "queued", None)


async def test_a_steered_prompt_runs_by_itself_when_its_run_fails_first(world: World) -> None:
    """If it failed, a refusal of the provider would swallow the prompt that waited for the next step. B14 R14"""
    s = await Steered.in_(world)
    await s.call.fail(400)
    await _say(await world.call(), "At last.")
    await s.tap.complete(s.steer)
    assert [run["state"] for run in await s.api.runs(s.session_id)] == ["failed", "completed"]


async def test_a_steered_prompt_that_is_cancelled_before_it_is_taken_never_reaches_the_model(world: World) -> None:
    """If it failed, words that were taken back would still change what the run does. B14 B09"""
    s = await Steered.in_(world)
    await s.api.cancel_run(s.steer)
    await _say(s.call, "Done.")
    await s.tap.complete(s.steer)
    states = [run["state"] for run in await s.api.runs(s.session_id)]
    assert (states, len(world.requests)) == (["completed", "canceled"], 1)


async def test_a_steer_on_an_idle_session_is_an_ordinary_prompt(world: World) -> None:
    """If it failed, a client would have to know whether something runs before it may speak. B14"""
    api, tap = await world.attached()
    accepted = await api.prompt(await api.new_session(), "hello", on_busy="steer")
    await _say(await world.call(), "Hi.")
    complete = await tap.complete(accepted["run_id"])
    assert (accepted["disposition"], accepted.get("into"), complete.body["text"]) == ("started", None, "Hi.")


async def test_steers_that_meet_the_end_of_the_run_are_each_answered_once(world: World) -> None:
    """If it failed, a correction sent in the moment of the last word would be lost, or answered twice. B14 R14 R9"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    await api.prompt(session_id, "begin")
    call = await world.call()
    await call.say("Done.")
    world.auto(lambda request: [{"say": "That too."}])
    steers = [api.prompt(session_id, f"steer {number}", on_busy="steer") for number in range(10)]
    answers = await together(*steers[:5], _end(call), *steers[5:])
    run_ids = [answer["run_id"] for answer in answers if answer is not None]
    for run_id in run_ids:
        await tap.complete(run_id)
    ends = [[event.kind for event in of_run(tap, run_id)].count("run_complete") for run_id in run_ids]
    prompts = [line for line in await api.story(session_id) if line.startswith("user: steer")]
    assert (ends, sorted(prompts)) == ([1] * 10, [f"user: steer {number}" for number in range(10)])


async def _end(call: ModelCall) -> None:
    try:
        await call.end()
    except CallGone:
        pass
