"""A run over a link to a worker that speaks plain frames only: it is sent nothing that it does not know."""

import asyncio
import uuid
from typing import Any

import pytest

from tests.fleet.recorder import World
from tests.fleet.scripted_worker import Talk, scripted_worker
from windlass import limits
from windlass.fleet.parent.link import RemoteExecutor
from windlass.wire.execution import PermissionAsk, RunOutcome
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, SteerTaken


async def run(url: str, world: World) -> RunOutcome:
    async with asyncio.timeout(20):
        return await RemoteExecutor(url).run(world.spec, world.events, world.steer, world.cancel)


async def say(talk: Talk, *words: str) -> None:
    for word in words:
        await talk.send(kind="event", event={"type": "token", "content": word})


async def test_tokens_become_one_assistant_message() -> None:
    """B73: the answer of somebody else's worker would not be in the conversation."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await say(talk, "one ", "two ", "", "three")
        await talk.send(kind="event", event={"type": "complete"})
        await talk.terminal(result="one two three")
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        assert await run(url, world) == RunOutcome("completed", result="one two three")
    start = world.events.events[0]
    assert isinstance(start, MessageStart)
    id = start.message_id
    assert world.events.events == [
        MessageStart(id, "assistant"),
        Delta(id, 0, "text", "one ", "text"),
        Delta(id, 0, "text", "two "),
        Delta(id, 0, "text", "three"),
        MessageEnd(id, "end_turn"),
    ]


async def test_the_result_is_the_text_when_there_were_no_tokens() -> None:
    """The smallest worker, one terminal and nothing else, would leave an empty answer."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.terminal(result="all at once")
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        await run(url, world)
    assert (world.events.kinds, world.events.text) == (["MessageStart", "Delta", "MessageEnd"], "all at once")


async def test_a_message_ends_also_without_complete() -> None:
    """A worker that goes straight to its terminal would leave its message open."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await say(talk, "word")
        await talk.terminal()
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        await run(url, world)
    assert world.events.kinds == ["MessageStart", "Delta", "MessageEnd"]


async def test_a_failed_run_leaves_its_message_to_the_owner() -> None:
    """The message would say that its turn ended well."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await say(talk, "word")
        await talk.terminal("error", error="No more.", result="ignored")
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        outcome = await run(url, world)
    assert (outcome.status, outcome.error) == ("failed", "No more.")
    assert world.events.kinds == ["MessageStart", "Delta"]


async def test_it_is_sent_only_plain_frames_and_fields() -> None:
    """A plain peer never receives another kind: an existing worker would take it for an error."""
    heard: list[dict[str, Any]] = []

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.receive("message")
        world.steer.withdraw("run_taken_back")  # for which it has no word
        await talk.send(
            kind="approval_request",
            id=f"sa-{uuid.uuid4()}",
            body={"tool_name": "bash", "permission_type": "execute", "resource": "ls", "question": "Run ls?"},
        )
        await talk.receive("approval_reply")
        world.cancel.set()
        await talk.receive("cancel")
        heard.extend(talk.heard)
        await talk.terminal("cancelled")
        await talk.gone()

    world = World("now", earlier=("first", "answer"))
    world.steer.say("the other way")
    async with scripted_worker(script, plain=True) as url:
        await run(url, world)
    fields = [set(frame) for frame in heard]
    assert fields == [{"kind", "assignment", "messages"}, {"kind", "text"}, {"kind", "id", "approved"}, {"kind"}]
    assert [message["parts"][0]["data"]["text"] for message in heard[0]["messages"]] == ["first", "answer"]


async def test_the_minimal_run_is_minimal() -> None:
    """`{"kind": "run", "assignment": "x"}`: the smallest worker in the world reads just that."""

    async def script(talk: Talk) -> None:
        assert await talk.start() == {"kind": "run", "assignment": "x"}
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script, plain=True) as url:
        await run(url, World("x"))


async def test_an_approval_has_four_plain_fields() -> None:
    """B55: a gated tool of an existing worker could not be asked about."""

    async def script(talk: Talk) -> None:
        await talk.start()
        body = {"tool_name": "bash", "permission_type": "execute", "resource": "ls", "question": "Run ls?"}
        await talk.send(kind="approval_request", id=f"sa-{uuid.uuid4()}", body=body)
        assert (await talk.receive("approval_reply"))["approved"] is True
        await talk.terminal()
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        await run(url, world)
    assert world.events.asked == [PermissionAsk("", "bash", "execute", "Run ls?", "ls", "ls")]


async def test_steering_is_taken_when_it_is_sent() -> None:
    """A plain worker never says that it took it: the person's words would run again as a prompt of their own."""
    world = World()

    async def script(talk: Talk) -> None:
        await talk.start()
        await say(talk, "before ")
        await world.events.until(lambda: bool(world.events.text))
        id = world.steer.say("the other way")
        assert (await talk.receive("message"))["text"] == "the other way"
        assert world.events.events[-1] == SteerTaken(id)
        await say(talk, "after")
        await talk.terminal()
        await talk.gone()

    async with scripted_worker(script, plain=True) as url:
        assert (await run(url, world)).status == "completed"
    assert (world.events.text, world.events.kinds.count("MessageStart")) == ("before after", 1)


async def test_what_means_nothing_to_us_is_ignored() -> None:
    """Events are opaque: an existing worker that tells of its own things would fail every run."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send(kind="event", event={"type": "tool_call", "name": "ls"})
        await talk.send(kind="event", event={"no": "type"})
        await talk.send(kind="event", event={"type": "token", "content": 7})
        await talk.send(kind="event", event={"type": "token", "content": "word"}, surplus="field")
        await talk.socket.send_bytes(b"binary")
        await talk.socket.ping()
        await talk.terminal()
        await talk.gone()

    world = World()
    async with scripted_worker(script, plain=True) as url:
        assert (await run(url, world)).status == "completed"
    assert world.events.text == "word"


async def test_a_plain_worker_is_not_held_to_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may think for minutes without a word, and its WebSocket library need not answer a ping meanwhile."""
    monkeypatch.setattr(limits, "LINK_PING_SECONDS", 0.01)
    monkeypatch.setattr(limits, "LINK_SILENCE_SECONDS", 0.03)

    async def script(talk: Talk) -> None:
        await talk.start()
        await asyncio.sleep(0.2)  # the silence itself is what is tried
        await talk.terminal(result="done")
        await talk.gone()
        assert [frame["kind"] for frame in talk.heard] == ["run"]

    async with scripted_worker(script, plain=True) as url:
        assert (await run(url, World())).status == "completed"


async def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker in a loop would fill the disk."""
    monkeypatch.setattr(limits, "MESSAGE_BYTES", 100)

    async def script(talk: Talk) -> None:
        await talk.start()
        await say(talk, "x" * 60, "x" * 60)
        await talk.gone()

    async with scripted_worker(script, plain=True) as url:
        outcome = await run(url, World())
    assert outcome.status == "failed"
    assert "100 characters" in outcome.error
