"""What executors do, as both kinds of peers see it: events, commits, approvals, sub-agents, and mistakes."""

import asyncio
import contextlib

import pytest

from tests.fleet.full_peer import FullPeer
from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer, tokens
from windlass.wire.delegation import ListAgents
from windlass.wire.execution import Cancel, Events, PermissionAsk, RunOutcome, RunSpec, Steer
from windlass.wire.messages import Text
from windlass.wire.run_events import Delta, MessageEnd, MessageStart, SteerTaken, Step

# -- events under windlass.1 -------------------------------------------------------------------------------------------


class WaitsForTheDisk:
    """Hands over two events to be committed, one between them, and tells when each was."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        first = events.durable(Step(1))
        events.emit(Step(2))
        second = events.durable(Step(3))
        await first
        events.emit(Step(4))
        await second
        return RunOutcome("completed", transcript={"steps": [1, 2, 3, 4]})


async def test_durable_events_wait_for_their_ack() -> None:
    """A tool would run before its call is on disk (design 6)."""
    async with own_worker(WaitsForTheDisk) as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("x")
        frames = [await peer.next() for _ in range(3)]
        assert [(frame["seq"], frame.get("durable", False)) for frame in frames] == [(1, True), (2, False), (3, True)]
        await peer.silent(0.05)
        await peer.send("ack", run_id="run_1", attempt=1, seq=2)
        assert (await peer.next())["event"] == {"type": "step", "number": 4}
        await peer.silent(0.05)
        await peer.send("ack", run_id="run_1", attempt=1, seq=4)
        _, terminal = await peer.terminal()
    assert terminal["status"] == "completed"
    assert terminal["transcript"] == {"steps": [1, 2, 3, 4]}


async def test_to_a_plain_peer_nothing_is_durable_and_nothing_hangs() -> None:
    """A plain peer sends no acks: every tool would wait for ever."""
    async with own_worker(WaitsForTheDisk) as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask("x")
    assert frames == []
    assert terminal == {
        "kind": "terminal",
        "status": "completed",
        "result": "",
        "transcript": {"steps": [1, 2, 3, 4]},
    }


class _TwoMessages:
    """Speaks twice, thinks in between, and gives no result of its own."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        said = [part.data.text for message in spec.messages for part in message.parts if isinstance(part, Text)]
        for number, text in enumerate(["Looking.", "|".join(said)]):
            events.emit(MessageStart(f"m{number}", "assistant"))
            events.emit(Delta(f"m{number}", 0, "thinking", "hm", part_type="reasoning"))
            events.emit(Delta(f"m{number}", 1, "text", text, part_type="text"))
            events.emit(MessageEnd(f"m{number}", "end_turn"))
        return RunOutcome("completed")


async def test_a_plain_peer_sees_one_text_and_its_end_once() -> None:
    """`complete` in the middle would make it stop listening; the result would be empty."""
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yo"}]}, 7]
    async with own_worker(_TwoMessages) as worker, PlainPeer(worker.url) as peer:
        await peer.run("now", messages=history, reasoning_effort="low")
        frames, terminal = await peer.terminal()
    assert "".join(tokens(frames)) == "Looking.\n\nhi|yo|now"
    assert [frame["event"]["type"] for frame in frames] == ["token", "token", "complete"]
    assert terminal["result"] == "hi|yo|now"


class _Misbehaves:
    """Does what its assignment says, and none of it is right."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        match spec.prompt:
            case "raise":
                raise KeyError("the thing")
            case "exit":
                raise SystemExit(3)
            case "none":
                return None  # type: ignore[return-value]
            case "cancel itself":
                raise asyncio.CancelledError
            case "surrogate":
                return RunOutcome("failed", error="half \ud83d")
            case "event":
                events.emit(Delta("m", 0, "text", "\ud83d"))
            case "transcript":
                return RunOutcome("completed", transcript=object())
            case "long transcript":
                return RunOutcome("completed", result="fine", transcript="x" * 9_000_000)
        return RunOutcome("failed")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("raise", "KeyError: 'the thing'"),
        ("exit", "SystemExit"),
        ("none", "NoneType"),
        ("cancel itself", "by itself"),
        ("surrogate", "half ?"),
        ("event", "UnicodeEncodeError"),
        ("transcript", "transcript"),
        ("nothing", "did not say why"),
    ],
)
async def test_an_executor_that_breaks_gives_an_error_that_says_how(assignment: str, words: str) -> None:
    """The parent would wait for ever, or be told nothing it can act on (B58 I20)."""
    async with own_worker(_Misbehaves) as worker, PlainPeer(worker.url) as peer:
        _, terminal = await peer.ask(assignment)
        assert terminal["status"] == "error"
        assert words in terminal["error"]
        assert "Traceback" not in terminal["error"]
        assert (await peer.ask("raise"))[1]["status"] == "error"  # the connection is as good as before


async def test_a_transcript_that_is_too_long_is_left_out_and_said() -> None:
    """A frame over the bound would end the link and lose the run's end (I20)."""
    async with own_worker(_Misbehaves) as worker, PlainPeer(worker.url) as peer:
        _, terminal = await peer.ask("long transcript")
    assert (terminal["status"], terminal["result"]) == ("completed", "fine")
    assert "transcript" not in terminal
    assert "9000002 bytes" in terminal["error"]


# -- asking


class _AsksAndLooksAway:
    """Stops waiting for its approval by itself."""

    verdicts: list[object] = []

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        ask = PermissionAsk("call", "tool", "write", "May I?", "/x", "/x", {"deep": [1, {"a": None}]}, confined=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(events.approve(ask), 0.05)
        self.verdicts.append(await events.approve(ask))
        reply = await events.delegate(ListAgents())
        return RunOutcome("completed", result=reply.error or ",".join(agent.id for agent in reply.agents))


async def test_an_approval_is_withdrawn_when_the_asker_stops_waiting() -> None:
    """A person would be asked by nobody (B25)."""
    async with own_worker(_AsksAndLooksAway) as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("x")
        first = await peer.until("approval_request")
        assert first["body"] == {
            "tool_name": "tool",
            "permission_type": "write",
            "resource": "/x",
            "question": "May I?",
            "tool_call_id": "call",
            "params": {"deep": [1, {"a": None}]},
            "path": "/x",
            "confined": True,
        }
        assert (await peer.until("approval_withdrawn"))["id"] == first["id"]
        second = await peer.until("approval_request")
        await peer.send("approval_reply", run_id="run_1", attempt=1, id=second["id"], approved=False, verdict="expired")
        asked = await peer.until("agents_request")
        assert asked["request"] == {"action": "list"}
        reply = {"agents": [{"id": "ses_1", "role": "helper", "state": "idle"}]}
        await peer.send("agents_reply", run_id="run_1", attempt=1, id=asked["id"], reply=reply)
        _, terminal = await peer.terminal()
    assert _AsksAndLooksAway.verdicts.pop() == "expired"
    assert terminal["result"] == "ses_1"


async def test_a_plain_peer_has_no_agents_to_ask_for() -> None:
    """It would get a frame it does not know, and the run would wait for ever."""
    async with own_worker(_AsksAndLooksAway) as worker, PlainPeer(worker.url) as peer:
        await peer.run("x")
        await peer.next()
        await peer.send("approval_reply", id=(await peer.next())["id"], approved=True)
        _, terminal = await peer.terminal()
    assert "over this link" in terminal["result"]
    assert _AsksAndLooksAway.verdicts.pop() == "granted"


class _PassesMessagesOn:
    """Takes a message, and waits to hear that it was cancelled."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        message = await steer.next()
        events.emit(SteerTaken(message.run_id))
        return RunOutcome("completed", result=f"{message.text}, then not {await steer.withdrawn()}")


async def test_a_message_that_was_taken_can_still_be_withdrawn() -> None:
    """Whoever passes messages on to another would pass on what a person has taken back."""
    async with own_worker(_PassesMessagesOn) as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("x")
        await peer.send("message", run_id="run_1", attempt=1, id="m1", text="go")
        assert (await peer.next())["event"] == {"type": "steer_taken", "run_id": "m1"}
        await peer.send("message_withdrawn", run_id="run_1", attempt=1, id="m1")
        _, terminal = await peer.terminal()
    assert terminal["result"] == "go, then not m1"
