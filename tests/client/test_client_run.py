"""A run in the SDK's hands, on a real server: its answer, its text, its events and its end (B01, B10, B40)."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from windlass.client import Client, NotFound, RunFailed, RunHandle, WorkspaceHandle
from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import ServerProcess, openai_config

pytestmark = pytest.mark.asyncio(loop_scope="module")
Place = tuple[ServerProcess, ModelServer]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One server and its model for all of these tests; each has a workspace of its own."""
    directory = tmp_path_factory.mktemp("sdk")
    async with ModelServer() as model, ServerProcess(directory, config=openai_config(model.url)) as server:
        yield server, model


@pytest_asyncio.fixture(loop_scope="module")
async def model(place: Place) -> AsyncIterator[ModelServer]:
    yield place[1]
    place[1].auto(None)
    place[1].hang_up()


@pytest_asyncio.fixture(loop_scope="module")
async def project(place: Place, tmp_path: Path) -> AsyncIterator[WorkspaceHandle]:
    async with _opened(place[0], tmp_path) as workspace:
        yield workspace
        for session in await workspace.sessions():
            await workspace.cancel(session.id)


@asynccontextmanager
async def _opened(server: ServerProcess, directory: Path) -> AsyncIterator[WorkspaceHandle]:
    async with Client(server.url, server.token) as client:
        workspace = await client.open(directory)
        yield workspace
        await client.retire()


async def _prompted(workspace: WorkspaceHandle, text: str = "hello") -> RunHandle:
    return await workspace.prompt((await workspace.create_session()).id, text)


async def _told(run: RunHandle) -> list[str]:
    """The run's events in words, without those that are about live text."""
    lines = []
    async with asyncio.timeout(30):
        async for event in run.events():
            state = event.payload.get("state") or event.payload.get("role") or ""
            if event.id is not None:
                lines.append(f"{event.kind} {state}".strip())
    return lines


async def test_the_answer_of_a_run_is_awaited_on_its_handle(project: WorkspaceHandle, model: ModelServer) -> None:
    """The first thing anyone does with the SDK. B01 B10"""
    model.auto(lambda request: [{"say": "Good morning."}])
    run = await _prompted(project)
    assert (run.run_id, run.disposition, run.position, run.into) == (run.id, "started", 0, "")
    result = (await run.result(timeout=30)).raise_for_state()
    assert (result.text, run.state, run.is_over) == ("Good morning.", "completed", True)
    assert run.raise_for_state() is run


async def test_asking_is_one_line(project: WorkspaceHandle, model: ModelServer) -> None:
    """A script that only wants an answer would need five lines for it."""
    model.auto(lambda request: [{"say": "Blue."}])
    first = await project.ask("Which colour?", timeout=30)
    again = await project.ask("And now?", first.session_id, timeout=30)
    assert (first.text, again.text, again.session_id) == ("Blue.", "Blue.", first.session_id)
    assert len(await project.messages(first.session_id)) == 4


async def test_giving_up_on_a_result_leaves_the_run_alone(project: WorkspaceHandle, model: ModelServer) -> None:
    """An impatient script would end work that others are watching. B01"""
    run = await _prompted(project)
    call = await model.next_call()
    with pytest.raises(TimeoutError):
        await run.result(timeout=0.05)
    await call.say("Still here.")
    await call.end()
    assert (await run.result(timeout=30)).text == "Still here."


async def test_a_run_that_did_not_complete_raises_only_when_asked_to(
    project: WorkspaceHandle, model: ModelServer
) -> None:
    """A cancel by somebody else would crash a program that just looks, or pass for an answer in one that does not."""
    run = await _prompted(project)
    await model.next_call()
    await run.cancel()
    result = await run.result(timeout=30)
    assert result.state == "canceled"
    with pytest.raises(RunFailed, match="was cancelled") as caught:
        result.raise_for_state()
    assert (caught.value.run_id, caught.value.state) == (run.id, "canceled")
    with pytest.raises(RunFailed):
        run.raise_for_state()


async def test_text_comes_while_it_is_written(project: WorkspaceHandle, model: ModelServer) -> None:
    """An answer that takes a minute would be a minute of silence. B43"""
    run = await _prompted(project)
    call = await model.next_call()
    async with aclosing(run.text()) as pieces, asyncio.timeout(30):
        await call.say("One ")
        said = await anext(pieces)
        assert said == "One "
        await call.say("two.")
        await call.end()
        said += "".join([piece async for piece in pieces])
    assert (said, run.state) == ("One two.", "completed")


async def test_text_is_whole_for_who_comes_in_the_middle_and_after_the_end(
    project: WorkspaceHandle, model: ModelServer
) -> None:
    """B43: a program that was started a moment later would show half an answer. Tools come in between."""
    run = await _prompted(project)
    call = await model.next_call()
    await call.say("Let me look.")
    await call.tool("ls", {"path": "."})
    await call.end()
    call = await model.next_call()
    await call.say("There is ")
    async with asyncio.timeout(30):
        async with aclosing(run.text()) as early:
            heard = ""
            while not heard.endswith("There is "):
                heard += await anext(early)
            other = await project.find_run(run.id)
            async with aclosing(other.text()) as late:
                heard_late = await anext(late)
                await call.say("nothing.")
                await call.end()
                heard += "".join([piece async for piece in early])
                heard_late += "".join([piece async for piece in late])
        afterwards = "".join([piece async for piece in other.text()])
    assert {heard, heard_late, afterwards} == {"Let me look.\n\nThere is nothing."}


async def test_events_of_a_run_are_its_own_from_its_start_to_its_end(
    project: WorkspaceHandle, model: ModelServer
) -> None:
    """A program would mix two answers up, wait behind the last one, or miss the first. B10 I2"""
    run = await _prompted(project)
    call = await model.next_call()
    other = await _prompted(project)
    behind = await project.prompt(run.session_id, "and then?")
    await behind.cancel()
    other_call = await model.next_call()
    for answering in (other_call, call):
        await answering.say("Yes.")
        await answering.end()
    expected = ["run accepted", "run running", "message user", "message assistant", "message assistant"]
    expected += ["run completed", "run_complete"]
    assert await _told(run) == await _told(other) == expected
    assert await _told(await project.find_run(run.id)) == expected
    ending = ["message user", "message assistant", "run canceled", "run_complete"]
    assert await _told(behind) == ["run queued", "run queued", *ending]
    assert await _told(await project.find_run(behind.id)) == ["run queued", "run queued", *ending]


async def test_an_unknown_run_is_not_found(project: WorkspaceHandle) -> None:
    """Else a typing mistake would wait for ever."""
    with pytest.raises(NotFound):
        await project.find_run("run_unknown")


async def test_many_results_cost_one_connection(project: WorkspaceHandle, model: ModelServer) -> None:
    """A server lets a client have sixteen streams: a fan-out over more runs would be refused its answers."""
    model.auto(lambda request: [{"say": f"Re: {request['messages'][-1]['content']}"}])
    runs = [await _prompted(project, f"number {number}") for number in range(24)]
    results = await asyncio.gather(*(run.result(timeout=60) for run in runs))
    assert [result.text for result in results] == [f"Re: number {number}" for number in range(24)]


async def test_a_result_is_not_lost_over_a_restart(tmp_path: Path) -> None:
    """B10 B13: who waits would wait for ever after a crash of the server."""
    async with ModelServer() as model:
        server = ServerProcess(tmp_path / "s", config=openai_config(model.url), listen=f"127.0.0.1:{_free_port()}")
        (tmp_path / "project").mkdir()
        async with server, _opened(server, tmp_path / "project") as workspace:
            run = await _prompted(workspace)
            await (await model.next_call()).say("Half ")
            behind = await workspace.prompt(run.session_id, "go on")
            texts = asyncio.create_task(_heard(run))
            waiting = asyncio.gather(run.result(), behind.result())
            model.auto(lambda request: [{"say": "Back."}])
            await server.kill()
            await server.start()
            first, second = await asyncio.wait_for(waiting, 60)
            assert (first.state, second.state, second.text) == ("interrupted", "completed", "Back.")
            assert await asyncio.wait_for(texts, 60) == first.text


async def _heard(run: RunHandle) -> str:
    return "".join([piece async for piece in run.text()])


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
