"""Undo, plan mode, summaries and people's own commands over a real server: real files, processes and streams."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from one_server import OneServer

from windlass.client import Client
from windlass.testing.server_process import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OneServer]:
    async with OneServer(tmp_path_factory.mktemp("one"), permissions='allow = ["bash", "write", "view"]') as one:
        yield one


async def wrote(one: OneServer, api: Api, session: str, content: str) -> str:
    """A run in which the agent writes a file; its id."""
    accepted = await api.prompt(session, f"write {content}")
    call = await one.model.next_call()
    await call.tool("write", {"file_path": "notes.txt", "content": content})
    await call.end()
    last = await one.model.next_call()
    await last.say("Done.")
    await last.end()
    assert (await api.run_over(accepted["run_id"]))["state"] == "completed"
    return str(accepted["run_id"])


async def test_what_an_agent_wrote_is_listed_and_taken_back(one: OneServer) -> None:
    """People could not get back what they had before they let an agent at it (B46)."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    run = await wrote(one, api, session, "by the agent")
    path = str(directory / "notes.txt")
    history = await api.ok("GET", f"W/sessions/{session}/history")
    assert [(v["path"], v.get("origin", "after"), v.get("absent", False)) for v in history] == [
        (path, "before", True),
        (path, "after", False),
    ]
    assert await api.ok("GET", f"W/sessions/{session}/filetracker/files") == [path]
    async with api.stream() as tap:
        undone = await api.ok("POST", f"W/sessions/{session}/undo?client_id={api.client_id}", {"run_id": run})
        assert undone == {"restored": [path], "refused": [], "removed": [path]} and list(directory.iterdir()) == []
        event = await tap.wait_for("file")
        assert (event.body["origin"], event.by["client_id"]) == ("undo", api.client_id)
    again = await api.ok("POST", f"W/sessions/{session}/undo", {"run_id": run})
    assert again == {"restored": [], "refused": [], "removed": []}


async def test_a_command_shows_its_output_and_everyone_sees_it(one: OneServer) -> None:
    """Whoever looks at the session would see an answer to something that nobody said (B21)."""
    api = await one.client()
    session = await api.new_session()
    async with api.stream() as tap:
        body = {"command": "echo hello; exit 4", "term_width": 80}
        assert await api.ok("POST", f"W/agent/sessions/{session}/shell", body) == {"output": "hello\n", "exit_code": 4}
        await tap.wait_for("run_complete")
    user, assistant = await api.messages(session)
    assert user["parts"][0]["data"]["text"] == "! echo hello; exit 4"
    assert assistant["parts"][0] == {
        "type": "shell_command",
        "data": {"command": "echo hello; exit 4", "output": "hello\n", "exit_code": 4},
    }


async def test_a_session_is_summed_up_while_the_caller_waits(one: OneServer) -> None:
    """The next request would carry all of the conversation again (B16 B17)."""
    api = await one.client()
    session = await api.new_session()
    await one.answered(api, session, "Tell me of ropes.", "A rope has strands.")
    asked = asyncio.create_task(api.ok("POST", f"W/agent/sessions/{session}/summarize"))
    call = await one.model.next_call()
    await call.say("They spoke of ropes.")
    await call.end()
    answer = await asked
    assert answer["summary"].startswith("They spoke of ropes.")
    found = await api.ok("GET", f"W/sessions/{session}")
    assert found["summary_message_id"] == answer["message_id"]
    accepted = await api.prompt(session, "And now?")
    sent = str((call := await one.model.next_call()).request["messages"])
    await call.say("Now sails.")
    await call.end()
    await api.run_over(accepted["run_id"])
    assert "They spoke of ropes." in sent and "A rope has strands." not in sent and "And now?" in sent


async def test_switching_plan_mode_on_stops_a_run_from_acting(one: OneServer) -> None:
    """A person who sees where it goes could only cancel it (I10)."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    accepted = await api.prompt(session, "make it so")
    call = await one.model.next_call()
    assert (await api.ok("POST", f"W/sessions/{session}/plan", {"plan": True}))["plan"] is True
    await call.tool("bash", {"command": "touch acted"})
    await call.end()
    last = await one.model.next_call()
    results = [message for message in last.request["messages"] if message["role"] == "tool"]
    await last.say("I may not.")
    await last.end()
    await api.run_over(accepted["run_id"])
    assert len(results) == 1 and "not run" in results[0]["content"] and not (directory / "acted").exists()


async def test_a_streamed_output_is_seen_before_the_command_has_ended(one: OneServer) -> None:
    """People would look at nothing for the minutes that a build takes (B43)."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    async with api.stream(deltas=True) as tap:
        accepted = await api.prompt(session, "build")
        call = await one.model.next_call()
        waits = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over"
        await call.tool("bash", {"command": waits})
        await call.end()
        shown = await tap.wait_for("message_delta", lambda event: event.body["field"] == "content")
        assert shown.body["text"].startswith("begun") and shown.body["type"] == "tool_result"
        served = [m for m in await api.messages(session) if m["role"] == "tool"]
        assert served[0]["parts"][0]["data"]["unfinished"] is True
        (directory / "go").touch()
        last = await one.model.next_call()
        await last.say("Built.")
        await last.end()
        await api.run_over(accepted["run_id"])
    (result,) = [m for m in await api.messages(session) if m["role"] == "tool"]
    data: dict[str, Any] = result["parts"][0]["data"]
    assert data["content"].startswith("begun\nover") and "unfinished" not in data


async def test_the_sdk_speaks_all_of_it(one: OneServer) -> None:
    """Programs would have to make the requests themselves, and get the shapes wrong (B46)."""
    directory = one.directory()
    api = await one.client(directory)
    session = await api.new_session()
    run = await wrote(one, api, session, "x")
    async with Client(one.server.url, one.server.token) as client:
        workspace = await client.open(directory)
        assert [v.origin for v in await workspace.file_history(session)] == ["before", "after"]
        assert await workspace.files_read(session) == [str(directory / "notes.txt")]
        assert (await workspace.shell(session, "cat notes.txt", 80)).output == "x"
        assert (await workspace.undo(session, run)).restored == [str(directory / "notes.txt")]
        assert (await workspace.set_plan(session, True)).plan
        call = asyncio.create_task(workspace.summarize(session))
        answer = await one.model.next_call()
        await answer.say("In short.")
        await answer.end()
        assert (await call).summary.startswith("In short.")
