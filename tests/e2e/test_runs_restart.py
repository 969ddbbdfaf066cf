"""What was accepted is there after the server was killed, and goes on."""

from pathlib import Path

from shared_world import story

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess


async def _killed_and_back(server: ServerProcess, api: Api, directory: Path) -> None:
    await server.kill()
    await server.start()
    await api.open(directory)


async def test_queued_prompts_survive_a_kill_and_run_in_their_order(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, a crash would lose the prompts people were told are accepted. B13 I1 I4"""
    session_id = await api.new_session()
    runs = [(await api.prompt(session_id, prompt))["run_id"] for prompt in ("one", "two", "three")]
    await (await model.next_call()).say("Half")
    model.auto(lambda request: [{"say": f"Re: {request['messages'][-1]['content']}"}])
    await _killed_and_back(server, api, directory)
    states = [(await api.run_over(run_id))["state"] for run_id in runs]
    answers = [line for line in story(await api.messages(session_id)) if line.startswith("assistant")]
    assert states == ["interrupted", "completed", "completed"]
    assert answers[1:] == ["assistant: Re: two [end_turn]", "assistant: Re: three [end_turn]"]


async def test_a_run_that_a_kill_interrupted_is_announced_once_with_its_reason(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, who waits for the run would wait for ever after a crash, or be told twice. B10 I3"""
    run_id = (await api.prompt(await api.new_session(), "hello"))["run_id"]
    await model.next_call()
    await _killed_and_back(server, api, directory)
    async with api.stream(after="0") as tap:
        end = await tap.complete(run_id)
        await api.new_session("a fact after it")
        await tap.wait_for("session", lambda event: event.body["title"] == "a fact after it")
    ends = [event for event in tap.events if event.kind == "run_complete"]
    assert (len(ends), bool(end.body["error"]), end.body.get("cancelled")) == (1, True, None)


async def test_a_prompt_is_found_after_a_kill_right_behind_its_202(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, an accepted prompt could vanish without a trace. B13 I1 I7 A44"""
    model.auto(lambda request: [{"say": "Fine."}])
    session_id = await api.new_session()
    run_id = (await api.prompt(session_id, "hello"))["run_id"]
    await _killed_and_back(server, api, directory)
    run = await api.run_over(run_id)
    told = story(await api.messages(session_id))
    ends = {"completed": "assistant: Fine. [end_turn]", "interrupted": "assistant: [error]"}
    assert (told[0], told[-1]) == ("user: hello", ends[run["state"]])


async def test_a_cancel_that_was_answered_holds_after_a_kill(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, a restart would bring back to life what people had stopped. B07 I5 A44"""
    session_id = await api.new_session()
    runs = [(await api.prompt(session_id, prompt))["run_id"] for prompt in ("one", "two", "three")]
    await model.next_call()
    await api.ok("POST", f"W/agent/sessions/{session_id}/cancel")
    await _killed_and_back(server, api, directory)
    states = [(await api.run_over(run_id))["state"] for run_id in runs]
    assert (states, len(model.requests)) == (["canceled"] * 3, 1)


async def test_a_cancelled_prompt_and_its_answer_are_stored_when_its_end_is_announced(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, people would be told of an end that a crash could take back. B04 B10 I12"""
    session_id = await api.new_session()
    await api.prompt(session_id, "active")
    queued = (await api.prompt(session_id, "queued"))["run_id"]
    async with api.stream() as tap:
        await api.ok("POST", f"W/agent/sessions/{session_id}/cancel")
        await tap.complete(queued)
        await server.kill()
    await server.start()
    await api.open(directory)
    assert story(await api.messages(session_id))[-2:] == ["user: queued", "assistant: [canceled]"]


async def test_a_named_run_is_the_same_run_after_a_restart(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, a client that repeats its request to a restarted server would do the work twice. B12 I8"""
    model.auto(lambda request: [{"say": "Fine."}])
    session_id = await api.new_session()
    await api.prompt(session_id, "hello", run_id="mine")
    await api.run_over("mine")
    await _killed_and_back(server, api, directory)
    again = await api.prompt(session_id, "hello", run_id="mine")
    other = {"session_id": session_id, "prompt": "something else", "run_id": "mine"}
    status, _ = await api.call("POST", "W/agent", other)
    assert (again["state"], status, len(model.requests)) == ("completed", 409, 1)


async def test_an_answer_for_the_session_is_remembered_after_a_restart(
    server: ServerProcess, model: ModelServer, api: Api, directory: Path
) -> None:
    """If it failed, people would be asked again what they had answered for the whole session. B26"""
    session_id = await api.new_session()
    async with api.stream() as tap:
        run_id = (await api.prompt(session_id, "hello"))["run_id"]
        call = await model.next_call()
        await call.tool("bash", {"command": "echo allowed"})
        await call.end()
        request = await tap.wait_for("permission_request")
        await api.ok("POST", "W/permissions/grant", {"permission": request.body, "action": "allow_session"})
        model.auto(_same_command_once)
        await tap.complete(run_id)
    await _killed_and_back(server, api, directory)
    again = (await api.prompt(session_id, "again"))["run_id"]
    assert (await api.run_over(again))["state"] == "completed"
    assert story(await api.messages(session_id))[-3:-1] == ["assistant: <bash> [tool_use]", "tool: ok"]


def _same_command_once(request: dict[str, object]) -> list[dict[str, object]]:
    messages = request["messages"]
    assert isinstance(messages, list)
    if messages[-1]["role"] == "tool":
        return [{"say": "Done."}]
    return [{"tool": "bash", "input": {"command": "echo allowed"}}]
