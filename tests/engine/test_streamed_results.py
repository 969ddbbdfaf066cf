"""Results that are shown while their tool works: live text like any other, and always whole in the end."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cast import Cast, Stage, forever
from engine_world import BY, EngineWorld

from windlass import limits
from windlass.engine import reading
from windlass.engine.subscription import Cursor, Subscription
from windlass.engine.workspace import Workspace
from windlass.journal.records import Checkpoint
from windlass.wire.events import Fact
from windlass.wire.messages import (
    Finish,
    FinishData,
    Message,
    MessagePrivate,
    Text,
    TextData,
    ToolCall,
    ToolCallData,
    ToolResult,
    ToolResultData,
)
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, PartAdded, ResetMessage, ToolEnded
from windlass.wire.runs import Run, RunPrivate, Usage
from windlass.wire.sessions import Session


async def called(stage: Stage, *calls: str) -> None:
    """An answer that asks for these calls of `bash`."""
    id = f"answer_{stage.spec.run_id}"
    parts: list[Any] = [ToolCall(ToolCallData(call, "bash", "{}", finished=True)) for call in calls]
    finish = Finish(FinishData("tool_use", 0))
    await stage.events.durable(MessageStart(id, "assistant", parts=[*parts, finish]))


async def shown(stage: Stage, call: str, *pieces: str) -> str:
    """A result that was begun, with what was shown of it so far."""
    id = f"result_{call}"
    await stage.events.durable(MessageStart(id, "tool"))
    for number, piece in enumerate(pieces):
        first = () if number else ("tool_result", call, "bash")
        stage.events.emit(Delta(id, 0, "content", piece, *first))
    return id


def result(call: str, content: str, is_error: bool = False) -> ToolResult:
    return ToolResult(ToolResultData(call, "bash", content, "", is_error))


async def results(workspace: Workspace, session_id: str) -> list[tuple[str, str, bool]]:
    """The results of a session as REST has them: their call, what they say, whether it is an error."""
    found = [msgspec.json.decode(body, type=Message) for body in await reading.messages(workspace, session_id)]
    data = [part.data for message in found for part in message.parts if isinstance(part, ToolResult)]
    assert not any(message.is_open for message in found)
    return [(part.tool_call_id, part.content, part.is_error) for part in data]


async def ended(tmp_path: Path, play: Any) -> list[tuple[str, str, bool]]:
    async with EngineWorld(tmp_path, Cast(root=play)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await world.idle(workspace)
        return await results(workspace, session_id)


def events(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.partition(b"data: ")[2] for block in data.split(b"\n\n") if b"data: " in block]
    decoded = [msgspec.json.decode(block) for block in blocks]
    return [(event["type"], event["payload"]["payload"]) for event in decoded]


async def test_a_streamed_result_is_replaced_by_what_the_tool_says_at_its_end(tmp_path: Path) -> None:
    """I7: the model would be sent what people were shown, without the exit code."""

    async def root(stage: Stage) -> None:
        await called(stage, "c1")
        id = await shown(stage, "c1", "one\n", "two\n")
        await stage.events.durable(ToolEnded(id, result("c1", "two of two\n[exit code 0]")))

    assert await ended(tmp_path, root) == [("c1", "two of two\n[exit code 0]", False)]


@pytest.mark.parametrize("said", ["one\ntwo\n", "one\ntwo\n[exit code 0]", "something else", ""])
@pytest.mark.parametrize("deltas", [True, False])
async def test_what_readers_were_shown_leads_to_what_the_fact_says(tmp_path: Path, said: str, deltas: bool) -> None:
    """I16 B43: a client that puts the pieces together would show another text than one that comes later."""
    go = asyncio.Event()

    async def root(stage: Stage) -> None:
        await called(stage, "c1")
        id = await shown(stage, "c1", "one\n", "two\n")
        await go.wait()
        await stage.events.durable(ToolEnded(id, result("c1", said)))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        stream = Subscription(workspace, "client", Cursor("", 0), deltas)
        await world.prompted(workspace)
        text, wholes = "", []
        seen: list[tuple[str, dict[str, Any]]] = []
        async with asyncio.timeout(10):
            while not any(kind == "run_complete" for kind, _ in seen):
                new = events(await stream.next(1.0))
                seen += new
                for kind, body in new:
                    if kind == "message_delta":
                        assert (body["field"], body["at"]) == ("content", len(text))
                        text += body["text"]
                    if kind == "message" and body["id"] == "result_c1":
                        part = body["parts"][0]["data"] if body["parts"] else {"content": ""}
                        if body["parts"] and not part.get("unfinished") and deltas:
                            # Or it was emptied first, and the fact brings all of it.
                            assert text in ("", part["content"]), "the pieces make what the fact says"
                        text = part["content"]
                        wholes.append(part)
                if "two" in text:
                    go.set()
        assert text == said and not wholes[-1].get("unfinished")
        assert deltas or any(part.get("unfinished") and part["content"] == "one\ntwo\n" for part in wholes)
        stream.close()


async def test_a_cancel_leaves_an_error_that_keeps_what_was_shown_and_says_why(tmp_path: Path) -> None:
    """I7 B05: what the command had done by then would be lost, to people and to the model."""

    async def root(stage: Stage) -> None:
        await called(stage, "c1", "c2", "c3")
        await shown(stage, "c1", "half of it\n")
        await shown(stage, "c2")
        reached.set()
        await asyncio.Event().wait()

    reached = asyncio.Event()
    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        session_id, _ = await world.prompted(workspace)
        await reached.wait()
        await workspace.cancel(session_id, BY)
        await world.idle(workspace)
        found = await results(workspace, session_id)
    assert sorted(call for call, _, _ in found) == ["c1", "c2", "c3"]
    assert all(is_error and "was cancelled" in content for _, content, is_error in found)
    assert [content.startswith("half of it\n") for call, content, _ in found if call == "c1"] == [True]


async def test_what_is_kept_of_a_result_that_broke_off_is_bounded(tmp_path: Path) -> None:
    """B17: megabytes of a build's output would be sent to the model with every request from then on."""

    async def root(stage: Stage) -> None:
        await called(stage, "c1")
        await shown(stage, "c1", "first", "x" * (2 * limits.TOOL_OUTPUT_CHARACTERS), "last")
        raise RuntimeError("it broke")

    ((_, content, is_error),) = await ended(tmp_path, root)
    assert is_error and content.startswith("first") and "last" in content and "The run failed" in content
    assert len(content) < limits.TOOL_OUTPUT_CHARACTERS + 500


@pytest.mark.parametrize(
    "nonsense",
    [
        PartAdded("result_c1", result("c1", "a second one")),
        MessageEnd("result_c1", "end_turn"),
        ToolEnded("no_such", result("c1", "x")),
        Delta("result_c1", 1, "content", "x", "tool_result", "c1", "bash"),
        Delta("result_c1", 1, "text", "x", "text"),
    ],
    ids=str,
)
async def test_a_result_is_ended_by_a_result_and_by_nothing_else(tmp_path: Path, nonsense: Any) -> None:
    """I7: a message that is no result could not be sent to any provider."""

    async def root(stage: Stage) -> None:
        await called(stage, "c1")
        await shown(stage, "c1", "begun")
        stage.events.emit(nonsense)

    ((call, content, is_error),) = await ended(tmp_path, root)
    assert (call, is_error) == ("c1", True) and content.startswith("begun") and "The run failed" in content


async def test_a_result_in_an_answer_is_refused(tmp_path: Path) -> None:
    """I7: as above, the other way round."""

    async def root(stage: Stage) -> None:
        await stage.events.durable(MessageStart("answer", "assistant"))
        stage.events.emit(Delta("answer", 0, "content", "x", "tool_result", "c1", "bash"))

    async with EngineWorld(tmp_path, Cast(root=root)) as world:
        workspace = await world.open()
        _, run_id = await world.prompted(workspace)
        await world.idle(workspace)
        assert (await workspace.run(run_id)).state == "failed"


async def test_a_result_that_starts_again_starts_from_nothing(tmp_path: Path) -> None:
    """I16: what a tool took back would stand before what it said then."""

    async def root(stage: Stage) -> None:
        await called(stage, "c1")
        id = await shown(stage, "c1", "void")
        stage.events.emit(ResetMessage(id))
        stage.events.emit(Delta(id, 0, "content", "anew", "tool_result", "c1", "bash"))
        await stage.events.durable(ToolEnded(id, result("c1", "anew")))

    assert await ended(tmp_path, root) == [("c1", "anew", False)]


async def test_after_a_crash_the_text_that_was_kept_is_an_error_that_says_so(tmp_path: Path) -> None:
    """I7 I3: a restart would take half an output for a whole one, and the model would rely on it."""
    async with EngineWorld(tmp_path, Cast(root=forever)) as world:
        row = await world.journal.workspace_for(world.path)
        log, _ = await world.journal.open_log(row.id)
        run = Run(
            id="r1",
            session_id="s1",
            state="running",
            cancel_requested=False,
            prompt="go",
            disposition="started",
            message_ids=(),
            usage=Usage(),
            cost=0.0,
            created_at="2026-01-01T00:00:00Z",
            started_at="2026-01-01T00:00:00Z",
        )

        def message(id: str, role: Any, parts: list[Any], index: int) -> Fact:
            body = Message(id, role, "s1", parts, "", "", 1, 1)
            return Fact("message", "created", body, BY, "s1", "r1", key=id, private=MessagePrivate(1, index))

        calls = [ToolCall(ToolCallData("c1", "bash", "{}")), ToolCall(ToolCallData("c2", "bash", "{}"))]
        facts = [
            Fact("session", "created", Session("s1"), BY, "s1", key="s1"),
            Fact("run", "created", run, BY, "s1", "r1", key="r1", private=RunPrivate(1, 1, BY)),
            message("m1", "user", [Text(TextData("go"))], 0),
            message("m2", "assistant", [*calls, Finish(FinishData("tool_use", 1))], 1),
            message("m3", "tool", [], 2),
            message("m4", "tool", [], 3),
        ]
        await log.durable(log.append(facts))
        half = ToolResult(ToolResultData("c1", "bash", "half", "", False, unfinished=True))
        kept = msgspec.json.encode(Message("m3", "tool", "s1", [half], "", "", 1, 1))
        world.journal.stage([Checkpoint(row.id, "m3", "s1", kept)])
        await world.journal.settled()
        world.journal.close_log(log)
        workspace = await world.open()
        await world.idle(workspace)
        found = await results(workspace, "s1")
        assert (await workspace.run("r1")).state == "interrupted"
    assert [(call, is_error) for call, _, is_error in found] == [("c1", True), ("c2", True)]
    assert found[0][1].startswith("half\n") and all("server stopped" in content for _, content, _ in found)
