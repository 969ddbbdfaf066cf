"""Waiting for a run: it ends now, it ended before, or its end is among what is gone."""

import asyncio

import pytest
from fake_windlass import EPOCH, FakeWindlass, a_message, a_run, finish, refusal, text

from windlass import limits
from windlass.client import NotFound, ServerUnreachable, WorkspaceHandle


async def test_the_end_of_a_run_is_waited_for(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """B10: a caller gets the answer from the run's last event, without polling."""
    server.runs["run_1"] = a_run("run_1", state="running")
    waiting = asyncio.create_task(workspace.wait("run_1"))
    await server.asked_for("/runs/run_1")
    await asyncio.wait_for(server.attached.wait(), 10)
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


async def test_all_who_wait_share_one_stream(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """A client may have sixteen: a fan-out over more runs would be refused its answers."""
    names = [f"run_{number}" for number in range(20)]
    server.runs |= {name: a_run(name, state="running") for name in names}
    waiting = asyncio.gather(*(workspace.wait(name) for name in names))
    await server.asked_for(f"/runs/{names[-1]}")
    await asyncio.wait_for(server.attached.wait(), 10)
    for name in names:
        server.finish(name, text=name)
    assert [result.text for result in await asyncio.wait_for(waiting, 10)] == names
    assert len(server.stream_headers) == 1


async def test_a_refused_stream_is_told_to_everyone_who_waits(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """They would wait for ever for something that cannot come."""
    server.runs["run_1"] = a_run("run_1", state="running")
    server.refuse("/events", refusal(401, "This token was revoked."))
    waiting = [workspace.wait("run_1") for _ in range(2)]
    results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
    assert [str(result) for result in results] == ["This token was revoked."] * 2


async def test_an_end_that_was_trimmed_under_a_slow_reader_is_found(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B41: a `reset` also comes in the middle of a stream, and no other `hello` after it."""
    server.runs["run_1"] = a_run("run_1", state="running")
    waiting = asyncio.create_task(workspace.wait("run_1"))
    await server.asked_for("/runs/run_1")
    await asyncio.wait_for(server.attached.wait(), 10)
    server.runs["run_1"]["state"] = "completed"
    server.live("reset", {"reason": "trimmed", "epoch": server.epoch, "head": len(server.facts)})
    assert (await asyncio.wait_for(waiting, 10)).state == "completed"


async def test_a_server_that_is_away_while_it_is_asked_is_waited_for(
    server: FakeWindlass, workspace: WorkspaceHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart at the wrong moment would throw the answer away that the run goes on to give."""
    monkeypatch.setattr(limits, "CLIENT_RETRY_BASE_SECONDS", 0.01)
    server.runs["run_1"] = a_run("run_1", state="completed")
    for _ in range(3 * limits.CLIENT_RETRIES):
        server.refuse("/runs/run_1", None)
    assert (await asyncio.wait_for(workspace.wait("run_1"), 20)).state == "completed"
    assert not server.refusals


async def test_a_server_that_stays_away_is_given_up(
    server: FakeWindlass, workspace: WorkspaceHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script would hang for ever on a machine that is gone."""
    monkeypatch.setattr(limits, "CLIENT_RETRY_BASE_SECONDS", 0.01)
    monkeypatch.setattr(limits, "CLIENT_GIVE_UP_SECONDS", 0.1)
    for _ in range(10 * limits.CLIENT_RETRIES):
        server.refuse("/runs/run_1", None)
    with pytest.raises(ServerUnreachable):
        await asyncio.wait_for(workspace.wait("run_1"), 20)
