"""How long a workspace stays open: create, attach, detach, goodbye, and runs in progress."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from one_server import OneServer

from windlass.testing.server_process import Api, ServerProcess, openai_config, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
CREATE_GRACE, DETACH_GRACE = 1.0, 0.3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OneServer]:
    graces = ("--create-grace", str(CREATE_GRACE), "--detach-grace", str(DETACH_GRACE))
    async with OneServer(tmp_path_factory.mktemp("one"), *graces) as one:
        yield one


async def is_open(api: Api) -> bool:
    status, _ = await api.call("GET", "W")
    assert status in (200, 404)
    return status == 200


async def closed(api: Api) -> None:
    async def is_closed() -> bool:
        return not await is_open(api)

    await until(is_closed, "the workspace is closed")


async def release(api: Api) -> None:
    await api.ok("DELETE", f"/v1/workspaces/{api.workspace_id}?client_id={api.client_id}")


async def grace_of_another_is_over(one: OneServer) -> None:
    """Let a whole create grace pass: that of a workspace opened now, which nobody attaches to."""
    await closed(await one.client())


async def test_a_created_workspace_waits_the_whole_create_grace_for_its_first_stream(one: OneServer) -> None:
    """B30: else a client that needs a moment to connect finds the workspace it has just created gone."""
    began = time.monotonic()
    api = await one.client()
    assert await is_open(api)
    await closed(api)
    assert time.monotonic() - began >= CREATE_GRACE


async def test_a_stream_holds_the_workspace_open_beyond_the_create_grace(one: OneServer) -> None:
    """B30 I17: else the workspace would close under a client that is looking at it."""
    api = await one.client()
    async with api.stream() as tap:
        await grace_of_another_is_over(one)
        assert await is_open(api)
        assert not tap.over


async def test_a_client_that_never_created_the_workspace_holds_it_by_attaching(one: OneServer) -> None:
    """B30: subscribing is attaching; else a second viewer loses the workspace when its creator leaves."""
    creator = await one.client()
    viewer = await one.onlooker(creator.workspace_id)
    async with viewer.stream():
        await creator.ok("DELETE", f"/v1/clients/{creator.client_id}")
        await grace_of_another_is_over(one)
        assert await is_open(viewer)


async def test_a_workspace_stays_for_the_detach_grace_after_its_last_stream_dropped(one: OneServer) -> None:
    """B30: else every network blip would close it."""
    api = await one.client()
    async with api.stream():
        await grace_of_another_is_over(one)  # so that it is not the create grace that keeps it
        dropped = time.monotonic()
    await closed(api)
    assert time.monotonic() - dropped >= DETACH_GRACE


async def test_a_client_back_within_the_detach_grace_has_lost_nothing(tmp_path: Path) -> None:
    """B30 R39: else a network blip costs events or the whole workspace."""
    project = tmp_path / "project"
    project.mkdir()
    config = openai_config("http://127.0.0.1:9/v1")
    async with (
        ServerProcess(tmp_path / "server", "--create-grace", "0.2", "--detach-grace", "15", config=config) as server,
        Api(server) as api,
        Api(server) as onlooker,
    ):
        onlooker.workspace_id = await api.open(project)
        session = await api.new_session("one")
        async with api.stream(after="0") as tap:
            last = await tap.wait_for("session")
            await api.ok("POST", f"W/current-session?client_id={api.client_id}", {"session_id": session})

        async def has_noticed() -> bool:
            listed = await onlooker.ok("GET", "W/sessions")
            return bool(listed[0]["attached_clients"] == 0)

        await until(has_noticed, "the server has noticed the drop")
        missed = await onlooker.new_session("while it was away")
        async with api.stream(last_event_id=last.id) as tap:
            await tap.wait_for("session", lambda event: event.body["id"] == missed)
            assert [event.seq for event in tap.facts] == [last.seq + 1]


async def test_a_closed_workspace_answers_404_and_its_streams_are_404_too(one: OneServer) -> None:
    """B31: else clients would talk to a workspace that nothing keeps alive."""
    api = await one.client()
    await closed(api)
    assert (await api.call("GET", "W/sessions"))[0] == 404
    assert (await api.call("GET", f"W/events?client_id={api.client_id}"))[0] == 404


async def test_opening_the_path_again_gives_the_same_id_and_all_history(one: OneServer) -> None:
    """B31: else closing a laptop would lose the conversation."""
    directory = one.directory()
    api = await one.client(directory)
    first_id = api.workspace_id
    async with api.stream():
        session = await api.new_session("kept")
        await one.answered(api, session, "What is kept?", "This.")
        before = await api.messages(session)
        await release(api)
    assert not await is_open(api)
    again = await one.client(directory)
    assert again.workspace_id == first_id
    assert await again.messages(session) == before
    assert [message["role"] for message in before] == ["user", "assistant"]


async def test_a_cursor_from_before_the_close_goes_on_after_it(one: OneServer) -> None:
    """B31 B40: else every close would make its clients load everything anew."""
    directory = one.directory()
    api = await one.client(directory)
    async with api.stream(after="0") as tap:
        await api.new_session("one")
        last = await tap.wait_for("session")
    await closed(api)
    again = await one.client(directory)
    async with again.stream(last_event_id=last.id) as tap:
        assert tap.events[0].body["epoch"] == last.id.partition(".")[0]
        await again.new_session("two")
        assert (await tap.wait_for("session")).seq == last.seq + 1


async def test_a_run_in_progress_keeps_the_workspace_open_with_nobody_attached(one: OneServer) -> None:
    """B33 B02 I17: else leaving the room would kill the work."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    accepted = await api.prompt(session, "Work on.")
    call = await one.model.next_call()
    await release(api)
    await grace_of_another_is_over(one)
    assert await is_open(api)
    await call.say("Done.")
    await call.end()
    await closed(api)
    again = await one.client(directory)
    assert (await again.run(accepted["run_id"]))["state"] == "completed"


async def test_queued_runs_keep_the_workspace_open_too(one: OneServer) -> None:
    """B33: else a prompt that was answered 202 would wait until somebody happens to come back."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    await api.prompt(session, "First.")
    second = await api.prompt(session, "Second.")
    call = await one.model.next_call()
    await release(api)
    await call.say("One.")
    await call.end()
    call = await one.model.next_call()
    assert await is_open(api)
    await call.say("Two.")
    await call.end()
    await closed(api)
    again = await one.client(directory)
    assert (await again.run(second["run_id"]))["state"] == "completed"


async def test_a_goodbye_ends_all_claims_of_the_client_at_once(one: OneServer) -> None:
    """B34: else a client that quits leaves its workspaces open for the length of a grace."""
    api = await one.client()
    elsewhere = await one.onlooker("")
    elsewhere.client_id = api.client_id
    await elsewhere.open(one.directory())
    async with api.stream() as tap:
        await api.ok("DELETE", f"/v1/clients/{api.client_id}")
        assert not await is_open(api)
        assert not await is_open(elsewhere)
        await tap.ended()


async def test_a_late_create_from_a_client_that_said_goodbye_is_refused(one: OneServer) -> None:
    """B34 R34: else the create that was still on its way opens a workspace that nobody ever closes."""
    api = await one.client()
    directory = one.directory()
    await api.ok("DELETE", f"/v1/clients/{api.client_id}")
    status, answer = await api.call(
        "POST", "/v1/workspaces", {"path": str(directory), "client_id": api.client_id.upper()}
    )
    assert status == 409
    assert "goodbye" in answer["message"]
    assert str(directory) not in [workspace["path"] for workspace in await api.ok("GET", "/v1/workspaces")]


async def test_a_late_stream_of_a_client_that_said_goodbye_is_refused(one: OneServer) -> None:
    """B34: else a reconnect that was under way makes a claim that nobody ever lets go."""
    directory = one.directory()
    api, other = await one.client(directory), await one.client(directory)
    async with other.stream():
        await api.ok("DELETE", f"/v1/clients/{api.client_id}")
        status, _ = await api.call("GET", f"W/events?client_id={api.client_id}")
        assert status == 409


async def test_the_goodbye_of_one_client_leaves_the_claims_of_another(one: OneServer) -> None:
    """B34 B22: else one person leaving throws everybody out."""
    directory = one.directory()
    api, other = await one.client(directory), await one.client(directory)
    async with other.stream() as tap:
        await api.ok("DELETE", f"/v1/clients/{api.client_id}")
        assert await is_open(other)
        session = await other.new_session("still here")
        await tap.wait_for("session", lambda event: event.body["id"] == session)


async def test_releasing_a_claim_one_does_not_have_is_fine(one: OneServer) -> None:
    """B34: a client that cleans up twice must not be told that it failed."""
    api = await one.client()
    stranger = await one.onlooker(api.workspace_id)
    await release(stranger)
    assert await is_open(api)


async def test_a_resident_server_stays_when_everybody_has_left(one: OneServer) -> None:
    """B32: else a server that was started to stay disappears overnight."""
    api = await one.client()
    await closed(api)
    assert (await api.call("GET", "/v1/health"))[0] == 200
    status, answer = await api.call("POST", "/v1/control", {"command": "shutdown"})
    assert status == 409
    assert answer["message"]
    assert (await api.call("GET", "/v1/health"))[0] == 200
