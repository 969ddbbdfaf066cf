"""Frames between a parent and a worker: order, cancel, supersede, steering, approvals, lost links."""

import asyncio
import re

from tests.fleet.full_peer import FullPeer, run_events
from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer, tokens, within
from windlass.fleet.worker.worker import WorkerAddress
from windlass.wire.execution import Cancel, Events, RunOutcome, RunSpec, Steer
from windlass.wire.messages import Text, TextData
from windlass.wire.run_events import MessageStart

# -- order and endings -------------------------------------------------------------------------------------------------


async def test_the_smallest_exchange(plain: PlainPeer) -> None:
    """A peer that knows nothing but `run` could not use a worker (B51 I20)."""
    await plain.socket.send_str('{"kind": "run", "assignment": "x"}')
    assert await plain.event() == {"type": "token", "content": "x "}
    assert await plain.event() == {"type": "complete"}
    assert await plain.next() == {"kind": "terminal", "status": "completed", "result": "echo: x"}
    await plain.silent(0.05)


async def test_one_run_after_the_other_on_one_connection(plain: PlainPeer) -> None:
    """A parent would have to connect anew for each assignment (B60)."""
    for word in ("one", "two", "three"):
        _, terminal = await plain.ask(word)
        assert terminal["result"] == f"echo: {word}"


async def test_cancel_ends_the_run_as_cancelled(plain: PlainPeer) -> None:
    """A run that nobody wants any more would go on (B52)."""
    await plain.run("a __sleep_ms:60000 b")
    await plain.event()
    await plain.send("cancel")
    assert await plain.terminal() == ([], {"kind": "terminal", "status": "cancelled"})


async def test_cancel_right_behind_run_is_not_lost(plain: PlainPeer) -> None:
    """A cancel that overtakes the executor's start would be forgotten (B52)."""
    await plain.run("__sleep_ms:60000")
    await plain.send("cancel")
    _, terminal = await plain.terminal()
    assert terminal["status"] == "cancelled"


async def test_without_a_run_cancel_message_and_reply_do_nothing(plain: PlainPeer) -> None:
    """A late click would break the connection, or the next run (frames: rules for both)."""
    for _ in range(2):
        await plain.send("cancel")
        await plain.send("message", text="hello?")
        await plain.send("approval_reply", id="sa-nobody", approved=True)
        _, terminal = await plain.ask("x")
        assert terminal == {"kind": "terminal", "status": "completed", "result": "echo: x"}


# -- superseding -------------------------------------------------------------------------------------------------------


async def test_a_second_run_supersedes_the_first(plain: PlainPeer) -> None:
    """Two runs' words would be mixed, and the peer could not tell whose terminal it sees (B53 I21)."""
    await plain.run("first __sleep_ms:60000 never")
    assert await plain.event() == {"type": "token", "content": "first "}
    await plain.run("second")
    assert await plain.next() == {"kind": "terminal", "status": "cancelled"}
    frames, terminal = await plain.terminal()
    assert tokens(frames) == ["second "]
    assert terminal["result"] == "echo: second"


async def test_each_of_many_superseding_runs_gets_its_terminal(plain: PlainPeer) -> None:
    """A parent in a hurry would wait for ever for the ones in between (I20)."""
    for number in range(20):
        await plain.run(f"{number} __sleep_ms:{0 if number == 19 else 60000}")
    endings = [(await plain.terminal())[1] for _ in range(20)]
    assert [ending["status"] for ending in endings] == ["cancelled"] * 19 + ["completed"]
    assert endings[-1]["result"] == "echo: 19"


async def test_a_cancel_behind_a_superseding_run_covers_both(plain: PlainPeer) -> None:
    """The run that was cancelled last would start all the same (B52 B53)."""
    await plain.run("__sleep_ms:60000")
    await plain.run("never")
    await plain.send("cancel")
    assert await plain.next() == {"kind": "terminal", "status": "cancelled"}
    assert await plain.next() == {"kind": "terminal", "status": "cancelled"}
    await plain.silent(0.05)


async def test_frames_of_another_run_are_not_taken_for_this_one(full: FullPeer) -> None:
    """A late cancel, message or ack of an old attempt would hit the new one (I21)."""
    await full.run("__steer __sleep_ms:60000", run_id="r", attempt=2)
    await full.send("cancel", run_id="r", attempt=1)
    await full.send("cancel", run_id="other", attempt=2)
    await full.send("message", run_id="r", attempt=1, id="m1", text="lost")
    assert (await full.until("undelivered"))["id"] == "m1"
    await full.send("message", run_id="r", attempt=2, id="m2", text="found")
    while (await full.until("event"))["event"]["type"] != "steer_taken":
        pass
    await full.send("cancel", run_id="r", attempt=2)
    _, terminal = await full.terminal()
    assert (terminal["status"], terminal["attempt"]) == ("cancelled", 2)


# -- steering ----------------------------------------------------------------------------------------------------------


async def test_a_message_right_behind_run_is_kept_for_it(plain: PlainPeer) -> None:
    """What a person typed a moment too early would be lost (B54)."""
    await plain.run("__sleep_ms:20 __steer __steer")
    await plain.send("message", text="one")
    await plain.send("message", text="two")
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: one two"


async def test_a_message_to_a_superseding_run_waits_for_it(plain: PlainPeer) -> None:
    """It would reach the run that is being stopped (B53 B54)."""
    await plain.run("__steer")
    await plain.run("__steer")
    await plain.send("message", text="mine")
    assert (await plain.next())["status"] == "cancelled"
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: mine"


async def test_a_message_that_missed_its_run_comes_back(full: FullPeer) -> None:
    """A person would believe that the agent has read it (B14)."""
    await full.run("__sleep_ms:30 done")
    await full.send("message", run_id="run_1", attempt=1, id="m1", text="too late")
    frames, _ = await full.terminal()
    undelivered = [frame for frame in frames if frame["kind"] == "undelivered"]
    assert undelivered == [{"kind": "undelivered", "run_id": "run_1", "attempt": 1, "id": "m1"}]
    await full.send("message", run_id="run_1", attempt=1, id="m2", text="far too late")
    assert (await full.next())["id"] == "m2"


async def test_a_withdrawn_message_is_not_read(full: FullPeer) -> None:
    """What a person took back would be said all the same."""
    await full.run("__sleep_ms:50 __steer")
    await full.send("message", run_id="run_1", attempt=1, id="m1", text="wrong")
    await full.send("message_withdrawn", run_id="run_1", attempt=1, id="m1")
    await full.send("message", run_id="run_1", attempt=1, id="m2", text="right")
    frames, terminal = await full.terminal()
    assert terminal["result"] == "echo: right"
    assert "undelivered" not in [frame["kind"] for frame in frames]


# -- approvals ---------------------------------------------------------------------------------------------------------


async def test_an_approval_has_an_id_that_cannot_be_guessed(plain: PlainPeer) -> None:
    """Anyone on the link could allow what nobody has seen (B55)."""
    await plain.run("__approve:a __approve:b")
    ids = []
    for _ in range(2):
        request = await plain.next()
        while request["kind"] != "approval_request":
            request = await plain.next()
        assert re.fullmatch(r"sa-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", request["id"])
        ids.append(request["id"])
        await plain.send("approval_reply", id="sa-00000000-0000-4000-8000-000000000000", approved=True)
        await plain.send("approval_reply", id=request["id"], approved=True)
    assert len(set(ids)) == 2
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: approved:true approved:true"


async def test_an_answer_counts_once_and_for_its_own_run_alone(plain: PlainPeer) -> None:
    """An old yes would allow what a later run asks (I10 I21)."""
    await plain.run("__approve:a")
    old = (await plain.next())["id"]
    await plain.run("__approve:b")
    assert (await plain.next())["status"] == "cancelled"
    new = (await plain.next())["id"]
    await plain.send("approval_reply", id=old, approved=True)
    await plain.silent(0.1)
    await plain.send("approval_reply", id=new, approved=False)
    _, terminal = await plain.terminal()
    assert terminal["result"] == "echo: approved:false"


async def test_a_cancelled_approval_is_withdrawn(full: FullPeer) -> None:
    """People would go on being asked for something that is over (B25 B55)."""
    await full.run("__approve:a")
    request = await full.until("approval_request")
    assert (request["run_id"], request["attempt"]) == ("run_1", 1)
    assert request["body"]["tool_call_id"]
    await full.send("cancel", run_id="run_1", attempt=1)
    frames, terminal = await full.terminal()
    assert [frame["id"] for frame in frames if frame["kind"] == "approval_withdrawn"] == [request["id"]]
    assert terminal["status"] == "cancelled"


# -- links that end ----------------------------------------------------------------------------------------------------


class _TellsOfItsEnd:
    """Says when its run was stopped."""

    stopped: asyncio.Event

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        events.emit(MessageStart("m", "assistant", parts=[Text(TextData("begun"))]))
        await cancel.wait()
        self.stopped.set()
        return RunOutcome("canceled")


async def test_a_lost_link_cancels_its_run() -> None:
    """A worker would go on working for a parent that is gone (B57)."""
    _TellsOfItsEnd.stopped = asyncio.Event()
    async with own_worker(_TellsOfItsEnd) as worker, PlainPeer(worker.url) as peer:
        await peer.run("x")
        await peer.event()
        peer.socket._response.connection.transport.abort()
        await within(_TellsOfItsEnd.stopped.wait())


async def test_two_links_know_nothing_of_each_other(worker: WorkerAddress) -> None:
    """One parent's cancel, words or approvals would reach another's run (B56)."""
    async with PlainPeer(worker.url) as one, PlainPeer(worker.url) as other:
        await one.run("one __approve:1 __sleep_ms:50 done")
        await other.run("other __approve:2")
        # An approval may overtake the words before it.
        asked = [[await peer.next(), await peer.next()] for peer in (one, other)]
        for frames in asked:
            frames.sort(key=lambda frame: str(frame["kind"]))
        assert [tokens(frames) for frames in asked] == [["one "], ["other "]]
        first, second = (frames[0] for frames in asked)
        await other.send("approval_reply", id=first["id"], approved=True)
        await other.send("message", text="for other")
        await one.silent(0.1)
        await one.send("approval_reply", id=first["id"], approved=True)
        await other.send("cancel")
        assert (await other.terminal())[1]["status"] == "cancelled"
        assert (await one.terminal())[1]["result"] == "echo: one approved:true done"
    assert second["id"] != first["id"]


async def test_run_events_are_whole_under_windlass_1(full: FullPeer) -> None:
    """Our parent would miss a message's start or end (I20)."""
    await full.run("a __steer b")
    await full.send("message", run_id="run_1", attempt=1, id="m1", text="s")
    frames, _ = await full.terminal()
    assert run_events(frames) == ["message_start", "delta", "steer_taken", "delta", "delta", "message_end"]
