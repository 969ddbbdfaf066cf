"""A run costs what it is, however long the conversation before it."""

import sqlite3
from contextlib import closing

import pytest
from shared_world import Client, World

from windlass.testing.server_process import EventTap

pytest_plugins = ["shared_server"]
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _facts_and_bytes(world: World, api: Client, tap: EventTap, session_id: str) -> tuple[int, int]:
    """One run with a tool call; how many facts it took, and how many bytes they are on disk."""
    run_id = (await api.prompt(session_id, "the same prompt every time"))["run_id"]
    end = await tap.complete(run_id)
    begin = next(event for event in tap.facts if event.kind == "run" and event.body["id"] == run_id)
    database = f"file:{world.server.data_dir / 'journal.db'}?mode=ro"
    with closing(sqlite3.connect(database, uri=True)) as connection:
        query = "SELECT count(*), sum(length(body) + coalesce(length(private), 0)) FROM facts "
        query += "WHERE workspace = ? AND seq BETWEEN ? AND ?"
        count, size = connection.execute(query, (api.workspace_id, begin.seq, end.seq)).fetchone()
    return count, size


def _tool_then_words(request: dict[str, list[dict[str, str]]]) -> list[dict[str, object]]:
    if request["messages"][-1]["role"] == "tool":
        return [{"say": "The same answer every time."}]
    return [{"tool": "ls", "input": {"path": "."}}]


async def test_a_run_writes_as_much_after_fifty_runs_as_the_first_one(world: World) -> None:
    """If it failed, a long conversation would get slower and the log would grow with the square of its length. B17"""
    api, tap = await world.attached()
    session_id = await api.new_session("a title of its own")
    world.auto(_tool_then_words)
    first = await _facts_and_bytes(world, api, tap, session_id)
    for _ in range(50):
        last = await _facts_and_bytes(world, api, tap, session_id)
    # Only counters may have gained a digit: the session's messages and tokens, the run's number.
    assert (last[0], abs(last[1] - first[1]) < 40) == (first[0], True), (first, last)


async def test_a_run_sends_a_watching_client_as_much_after_fifty_runs_as_the_first_one(world: World) -> None:
    """If it failed, a phone would be sent the old conversation again with every new prompt. B17"""
    api, tap = await world.attached(deltas=True)
    session_id = await api.new_session("a title of its own")
    world.auto(_tool_then_words)
    sizes = []
    for _ in range(51):
        seen = len(tap.facts)
        await tap.complete((await api.prompt(session_id, "the same prompt every time"))["run_id"])
        sizes.append((len(tap.facts) - seen, sum(len(str(event)) for event in tap.facts[seen:])))
    assert sizes[50][0] == sizes[0][0] and abs(sizes[50][1] - sizes[0][1]) < 200, (sizes[0], sizes[50])
