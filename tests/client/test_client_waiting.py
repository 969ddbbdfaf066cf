"""Waiting for a run: it ends now, it ended before, or its end is among what is gone."""

import asyncio

import pytest
from fake_windlass import EPOCH, FakeWindlass, a_message, a_run, finish, text

from windlass.client import NotFound, WorkspaceHandle


async def test_the_end_of_a_run_is_waited_for(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """B10: a caller gets the answer from the run's last event, without polling."""
    server.runs["run_1"] = a_run("run_1", state="running")
    waiting = asyncio.create_task(workspace.wait("run_1"))
    await server.asked_for("/runs/run_1")
    server.finish("run_1", text="The answer.")
    result = await asyncio.wait_for(waiting, 10)
    assert (result.state, result.text, result.completed) == ("completed", "The answer.", True)


async def test_a_run_that_ended_before_is_answered_from_what_is_stored(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Else waiting a moment too late would wait for ever."""
    server.runs["run_1"] = {**a_run("run_1", state="failed"), "message_ids": ["m1", "m2"], "error": "No model."}
    server.messages["ses_1"] = [a_message("m1", [text("Half")]), a_message("m2", [text("Done"), finish()])]
    result = await asyncio.wait_for(workspace.wait("run_1"), 10)
    assert (result.state, result.text, result.error) == ("failed", "Done", "No model.")


async def test_an_end_that_fell_into_a_reset_is_found(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """B41: `run_complete` comes once; when it is among what is gone, only asking helps."""
    server.runs["run_1"] = a_run("run_1", state="running")
    waiting = asyncio.create_task(workspace.wait("run_1"))
    await asyncio.wait_for(server.attached.wait(), 10)
    server.epoch = "f" + EPOCH[1:]
    server.runs["run_1"]["state"] = "interrupted"
    server.drop_streams()
    assert (await asyncio.wait_for(waiting, 10)).state == "interrupted"


async def test_an_unknown_run_is_not_waited_for(workspace: WorkspaceHandle) -> None:
    """Else a typing mistake would hang."""
    with pytest.raises(NotFound):
        await asyncio.wait_for(workspace.wait("run_unknown"), 10)
