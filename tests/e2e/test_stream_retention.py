"""What the log keeps: trimming moves the floor, a deleted session takes its words along, its size is bounded."""

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conftest import Starter
from log_reading import is_dense, whole_log

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, Event, ServerProcess, until

KEEP_NOTHING = "[journal]\nretention_days = 0\n"
KEEP_NO_BYTES = "[journal]\nretention_mb = 0\n"
ALLOW = 'allow = ["write", "bash"]'


async def run_through(api: Api, model: ModelServer, session: str, prompt: str, answer: str) -> None:
    accepted = await api.prompt(session, prompt)
    call = await model.next_call()
    await call.say(answer)
    await call.end()
    await api.run_over(accepted["run_id"])


async def trimmed(api: Api) -> dict[str, object]:
    """The greeting, once the trim of the start has moved the floor."""
    hello: dict[str, object] = {}

    async def has_moved() -> bool:
        async with api.stream() as tap:
            hello.update(tap.events[0].body)
        return bool(hello["floor"])

    await until(has_moved, "the floor has moved")
    return hello


async def trimmed_server(
    server: ServerProcess, api: Api, model: ModelServer, directory: Path, rule: str
) -> tuple[str, list[Event]]:
    """Fill a log, then start again with a rule that keeps next to nothing; the session and the facts there were."""
    await api.open(directory)
    session = await api.new_session("kept")
    for number in range(3):
        await run_through(api, model, session, f"Question {number}", f"Answer {number}")
    facts = await whole_log(api)
    await server.stop()
    with server.config_file.open("a") as config:
        config.write(rule)
    await server.start()
    await api.open(directory)
    return session, facts


@pytest.mark.parametrize("rule", [KEEP_NOTHING, KEEP_NO_BYTES], ids=["by age", "by size"])
async def test_a_cursor_below_the_floor_is_told_reset(
    start_server: Starter, model: ModelServer, directory: Path, rule: str
) -> None:
    """B41 B45: else a client goes on after a hole it does not know of."""
    server = await start_server()
    async with Api(server) as api:
        _, facts = await trimmed_server(server, api, model, directory, rule)
        hello = await trimmed(api)
        async with api.stream(last_event_id=facts[0].id) as tap:
            reset = await tap.wait_for("reset")
            assert tap.facts == []
            assert reset.body["head"] == hello["head"] == facts[-1].seq


async def test_a_bare_zero_starts_at_the_floor(start_server: Starter, model: ModelServer, directory: Path) -> None:
    """B41: else a client that asks for everything there is gets nothing, or a reset."""
    server = await start_server()
    async with Api(server) as api:
        _, facts = await trimmed_server(server, api, model, directory, KEEP_NOTHING)
        floor = (await trimmed(api))["floor"]
        assert isinstance(floor, int)
        left = await whole_log(api)
        assert left == [event for event in facts if event.seq > floor]
        assert is_dense(left, floor + 1)


async def test_trimming_the_log_keeps_the_conversation(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """B45: facts are the stream's memory; else retention would delete what people said."""
    server = await start_server()
    async with Api(server) as api:
        session, _ = await trimmed_server(server, api, model, directory, KEEP_NOTHING)
        await trimmed(api)
        parts = [part for message in await api.messages(session) for part in message["parts"]]
        words = [part["data"]["text"] for part in parts if part["type"] == "text"]
        assert words == [f"{kind} {number}" for number in range(3) for kind in ("Question", "Answer")]
        assert len(await api.ok("GET", f"W/runs?session={session}")) == 3


CANARY = "zzcanaryzz"


async def fill_with_canaries(api: Api, model: ModelServer, directory: Path) -> str:
    """A session that has the canary in its title, prompt, answer, reasoning, a tool's input and result, and a file."""
    session = await api.new_session(f"title {CANARY}")
    accepted = await api.prompt(session, f"prompt {CANARY}")
    call = await model.next_call()
    await call.think(f"thinking {CANARY}")
    await call.tool("write", {"path": "note.txt", "content": f"file {CANARY}\n"})
    await call.end()
    call = await model.next_call()
    await call.tool("bash", {"command": f"echo output {CANARY}"})
    await call.end()
    call = await model.next_call()
    await call.say(f"answer {CANARY}")
    await call.end()
    assert (await api.run_over(accepted["run_id"]))["state"] == "completed"
    return session


def bytes_on_disk(data_dir: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(data_dir.glob("journal.db*")))


async def test_deleting_a_session_removes_its_words_from_the_disk(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """B45: else what a person deleted can still be read in the file."""
    server = await start_server(permissions=ALLOW)
    async with Api(server) as api:
        await api.open(directory)
        session = await fill_with_canaries(api, model, directory)
        assert CANARY.encode() in bytes_on_disk(server.data_dir)
        await api.ok("DELETE", f"W/sessions/{session}")
        await server.stop()
        found = bytes_on_disk(server.data_dir)
        assert session.encode() in found  # we look at the right file
        assert CANARY.encode() not in found


async def test_deleting_a_session_in_the_middle_of_its_run_leaves_no_word_either(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """B45: else the text so far, kept against a crash, outlives the session it was for."""
    server = await start_server()
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        await api.prompt(session, "Go.")
        call = await model.next_call()
        await call.say(f"so far {CANARY}")
        await until(lambda: CANARY.encode() in bytes_on_disk(server.data_dir), "the text so far is on disk")
        await api.ok("DELETE", f"W/sessions/{session}")
        await server.stop()
        assert CANARY.encode() not in bytes_on_disk(server.data_dir)


async def test_the_log_of_a_deleted_session_can_still_be_replayed(
    start_server: Starter, model: ModelServer, directory: Path
) -> None:
    """B45 B40 I12: else a client whose cursor lies before the deletion is stuck, or is shown the deleted words."""
    server = await start_server(permissions=ALLOW)
    async with Api(server) as api:
        await api.open(directory)
        kept = await api.new_session("kept")
        session = await fill_with_canaries(api, model, directory)
        before = await whole_log(api)
        await run_through(api, model, kept, "Stay.", "I stay.")
        await api.ok("DELETE", f"W/sessions/{session}")
        for restart in (False, True):
            if restart:  # from memory first, then from disk
                await server.stop()
                await server.start()
                await api.open(directory)
            facts = await whole_log(api)
            assert is_dense(facts)
            assert facts[-1].seq > before[-1].seq
            assert CANARY not in json.dumps([event["data"] for event in facts])
            assert "I stay." in json.dumps([event["data"] for event in facts])
            assert (facts[-1].kind, facts[-1].change, facts[-1].body["id"]) == ("session", "deleted", session)


async def test_a_deleted_session_is_gone_over_rest(start_server: Starter, model: ModelServer, directory: Path) -> None:
    """B45 B19: else the stream says deleted and REST still has it."""
    server = await start_server(permissions=ALLOW)
    async with Api(server) as api:
        await api.open(directory)
        session = await fill_with_canaries(api, model, directory)
        await api.ok("DELETE", f"W/sessions/{session}")
        assert (await api.call("GET", f"W/sessions/{session}"))[0] == 404
        assert (await api.call("GET", f"W/sessions/{session}/messages"))[0] == 404
        everything = [await api.ok("GET", path) for path in ("W/sessions", "W/runs", "W/messages/user")]
        assert CANARY not in json.dumps(everything)


SIZES = {
    "long answers and tools": (200, 3_000, 0),
    "attachments": (200, 200, 20_000),
    "long prompts": (10_000, 200, 0),
}


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
async def test_the_log_costs_at_most_about_twice_the_conversation(
    start_server: Starter, model: ModelServer, directory: Path, size: tuple[int, int, int]
) -> None:
    """B45: else the disk fills several times faster than people and models write."""
    prompt, answer, attachment = size
    server = await start_server(permissions=ALLOW)
    content = base64.b64encode(b"x" * attachment).decode()
    attached = [{"file_path": "a.txt", "file_name": "a.txt", "mime_type": "text/plain", "content": content}]
    async with Api(server) as api:
        await api.open(directory)
        session = await api.new_session()
        model.auto(lambda request: _a_command_then(request, "y" * answer))
        for _ in range(10):
            accepted = await api.prompt(session, "x" * prompt, attachments=attached if attachment else [])
            assert (await api.run_over(accepted["run_id"]))["state"] == "completed"
        conversation = len(json.dumps(await api.messages(session)))
        await server.stop()
        log = _log_bytes(server.data_dir / "journal.db")
        assert log <= 2.5 * conversation, f"{log} bytes of facts for {conversation} of conversation"


def _log_bytes(file: Path) -> int:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
        (size,) = database.execute("SELECT sum(length(body) + coalesce(length(private), 0)) FROM facts").fetchone()
    database.close()
    return int(size)


def _a_command_then(request: dict[str, Any], answer: str) -> list[dict[str, Any]]:
    if request["messages"][-1]["role"] == "tool":
        return [{"say": answer}]
    return [{"say": "Let me look. " * 20}, {"tool": "bash", "input": {"command": "seq 500"}}]
