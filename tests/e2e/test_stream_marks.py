"""What else is on the stream: a heartbeat, its headers, and who caused each fact."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from log_reading import whole_log

from windlass.testing.forked_program import fork
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, ServerProcess, until


async def token(server: ServerProcess, name: str) -> str:
    """A token made by the command people use."""
    assert server.stem is not None
    argv = ["windlass", "token", "create", name, "--data-dir", str(server.data_dir)]
    process = await fork(server.stem, argv, dict(os.environ))
    secret, complaint = await process.communicate()
    assert process.returncode == 0, complaint
    return secret.decode().strip()


@pytest.fixture
async def phone(server: ServerProcess, directory: Path, stack: AsyncExitStack) -> AsyncIterator[Api]:
    """A second client with a token of its own."""
    secret = await token(server, "phone")
    api = await stack.enter_async_context(Api(server, token=secret))

    async def is_known() -> bool:
        return (await api.call("GET", "/v1/version"))[0] == 200

    await until(is_known, "the new token is known")
    await api.open(directory)
    yield api


async def test_an_idle_stream_carries_a_heartbeat(api: Api) -> None:
    """B44: else a proxy or a phone takes a quiet stream for a dead one, and a dead one for a quiet one."""
    async with api.stream() as tap:
        await until(lambda: bool(tap.comments), "a heartbeat", 15)
        assert tap.comments[0].startswith(":")
        assert len(tap.events) == 1  # the greeting: a heartbeat is no event


async def test_the_stream_tells_proxies_and_clients_how_to_treat_it(api: Api) -> None:
    """Else a proxy holds events back or keeps them, or a browser waits too long before it comes back."""
    headers = {"Authorization": f"Bearer {api.token}"}
    where = api.address(f"W/events?client_id={api.client_id}")
    async with aiohttp.ClientSession() as session, session.get(where, headers=headers) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert b"retry: 1000\n" in await response.content.readuntil(b"\n\n")


async def test_every_fact_of_a_run_says_who_sent_the_prompt(api: Api, model: ModelServer) -> None:
    """B46: else nobody can tell whose work it was."""
    session = await api.new_session()
    accepted = await api.prompt(session, "Mine.")
    call = await model.next_call()
    await call.say("Yours.")
    await call.end()
    await api.run_over(accepted["run_id"])
    facts = await whole_log(api)
    first = next(index for index, event in enumerate(facts) if event.kind == "run")
    name = facts[first].by["name"]
    assert name
    assert len(facts[first:]) >= 6
    assert [event.by for event in facts[first:]] == [{"name": name, "client_id": api.client_id}] * len(facts[first:])


async def test_every_fact_names_a_token_also_without_a_client(api: Api) -> None:
    """B46: else a mutation without `client_id` is nobody's."""
    await api.new_session("no client")
    facts = await whole_log(api)
    assert all(event.by.get("name") for event in facts)


async def test_a_session_says_who_created_renamed_and_deleted_it(api: Api, phone: Api) -> None:
    """B46: else people blame one another for what is gone."""
    session = (await api.ok("POST", f"W/sessions?client_id={api.client_id}", {"title": "mine"}))["id"]
    await phone.ok("PUT", f"W/sessions/{session}?client_id={phone.client_id}", {"title": "ours"})
    await phone.ok("DELETE", f"W/sessions/{session}?client_id={phone.client_id}")
    facts = [event for event in await whole_log(api) if event.kind == "session"]
    assert [event.by["client_id"] for event in facts][-1] == phone.client_id
    assert facts[-1].by["name"] == "phone"


async def test_a_cancel_by_another_client_carries_its_name(api: Api, phone: Api, model: ModelServer) -> None:
    """B46 B03: else the prompter does not learn who stopped the run."""
    session = await api.new_session()
    accepted = await api.prompt(session, "Go on for ever.")
    await model.next_call()
    await phone.ok("POST", f"W/agent/sessions/{session}/cancel?client_id={phone.client_id}")
    await api.run_over(accepted["run_id"])
    runs = [event for event in await whole_log(api) if event.kind == "run"]
    marked = next(event for event in runs if event.body["cancel_requested"])
    assert marked.by == {"name": "phone", "client_id": phone.client_id}
    assert runs[0].by["client_id"] == api.client_id


async def test_a_permission_answer_carries_the_name_of_who_gave_it(api: Api, phone: Api, model: ModelServer) -> None:
    """B46 B23: else nobody can tell who let a tool act."""
    session = await api.new_session()
    async with api.stream() as tap:
        accepted = await api.prompt(session, "Run it.")
        call = await model.next_call()
        await call.tool("bash", {"command": "true"})
        await call.end()
        asked = await tap.wait_for("permission_request")
        answer = {"permission": {"id": asked.body["id"]}, "action": "allow"}
        assert await phone.ok("POST", f"W/permissions/grant?client_id={phone.client_id}", answer) == {"resolved": True}
        told = await tap.wait_for("permission_notification", lambda event: event.body["outcome"] == "granted")
        assert told.by == told.body["by"] == {"name": "phone", "client_id": phone.client_id}
        assert asked.by["client_id"] == api.client_id
        call = await model.next_call()
        await call.say("Done.")
        await call.end()
        await tap.complete(accepted["run_id"])


async def test_what_the_server_does_by_itself_is_signed_by_the_server(
    api: Api, server: ServerProcess, directory: Path, model: ModelServer
) -> None:
    """B46: else a crash looks as if somebody had withdrawn the question."""
    accepted = await api.prompt(await api.new_session(), "Run it.")
    call = await model.next_call()
    await call.tool("bash", {"command": "true"})
    await call.end()

    async def is_waiting() -> bool:
        return (await api.run(accepted["run_id"]))["state"] == "waiting"

    await until(is_waiting, "the run waits for an answer")
    await server.kill()
    await server.start()
    await api.open(directory)
    notes = [event for event in await whole_log(api) if event.kind == "permission_notification"]
    assert notes[-1].body["outcome"] == "withdrawn"
    assert notes[-1].by == {"name": "server"}
