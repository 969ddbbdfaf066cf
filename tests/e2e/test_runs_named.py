"""A caller may name its run: the same name and the same prompt is the same run, however often it is sent."""

import pytest
from shared_world import World, together

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_same_run_id_and_prompt_again_is_the_same_run(world: World) -> None:
    """If it failed, a client that repeats a request after a lost answer would do the work twice. B12 I8"""
    api, tap = await world.attached()
    session_id = await api.new_session()
    first = await api.prompt(session_id, "hello", run_id="mine")
    call = await world.call()
    again = await api.prompt(session_id, "hello", run_id="mine")
    await call.say("Hi.")
    await call.end()
    await tap.complete("mine")
    once_more = await api.prompt(session_id, "hello", run_id="mine")
    told = [(answer["run_id"], answer["state"], answer["disposition"]) for answer in (first, again, once_more)]
    states = ["accepted", "running", "completed"]
    assert told == [("mine", state, "started") for state in states]
    assert (len(await api.runs(session_id)), len(world.requests)) == (1, 1)


async def test_the_same_run_id_at_the_same_moment_from_many_clients_is_one_run(world: World) -> None:
    """If it failed, two windows that send the same request at once would both start it. B12 I8"""
    clients = [await world.client() for _ in range(8)]
    tap = await world.tap(clients[0])
    world.auto(lambda request: [{"say": "Fine."}])
    for number in range(5):
        session_id = await clients[0].new_session()
        await together(*(client.session(session_id) for client in clients))  # every connection is open and warm
        body = {"session_id": session_id, "prompt": "hello", "run_id": f"ours-{number}"}
        await together(*(client.prompt(**body) for client in clients))
        await tap.complete(f"ours-{number}")
        created = [event.body["id"] for event in tap.events if event.kind == "run" and event.change == "created"]
        assert created.count(f"ours-{number}") == 1
        assert await clients[0].story(session_id) == ["user: hello", "assistant: Fine. [end_turn]"]


@pytest.mark.parametrize(
    "other",
    [
        {"prompt": "something else"},
        {"on_busy": "steer"},
        {"attachments": [{"file_path": "a", "file_name": "a", "mime_type": "text/plain", "content": "YQ=="}]},
    ],
    ids=["prompt", "on_busy", "attachments"],
)
async def test_the_same_run_id_with_another_body_is_refused(world: World, other: dict[str, object]) -> None:
    """If it failed, a caller would be told that its prompt was taken while another one runs. B12"""
    api = await world.client()
    session_id = await api.new_session()
    body = {"session_id": session_id, "prompt": "hello", "run_id": "mine"}
    await api.prompt(**body)
    status, answer = await api.call("POST", "W/agent", {**body, **other})
    assert (status, len(await api.runs(session_id))) == (409, 1), answer


async def test_a_run_id_of_another_session_is_refused(world: World) -> None:
    """If it failed, one name would mean two runs in a workspace, and a cancel by name would hit either. B12"""
    api = await world.client()
    await api.prompt(await api.new_session(), "hello", run_id="mine")
    body = {"session_id": await api.new_session(), "prompt": "hello", "run_id": "mine"}
    assert (await api.call("POST", "W/agent", body))[0] == 409


@pytest.mark.parametrize("run_id", ["with space", "a/b", "x" * 65, "ünï", "a\nb"])
async def test_a_run_id_that_does_not_fit_an_address_is_refused(world: World, run_id: str) -> None:
    """If it failed, a run could be made that no request can name. B12"""
    api = await world.client()
    body = {"session_id": await api.new_session(), "prompt": "hello", "run_id": run_id}
    assert (await api.call("POST", "W/agent", body))[0] == 422
