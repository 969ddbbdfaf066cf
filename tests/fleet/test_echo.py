"""The echo executor, seen by a plain peer."""

import pytest

from tests.fleet.full_peer import FullPeer, run_events
from tests.fleet.own_worker import own_worker
from tests.fleet.plain_peer import PlainPeer, tokens


async def test_each_word_is_one_token_and_the_result_has_them_all() -> None:
    """A smoke check could not tell what came back (B51)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask("hello wide world")
    assert tokens(frames) == ["hello ", "wide ", "world "]
    assert frames[-1] == {"kind": "event", "event": {"type": "complete"}}
    assert [frame["event"]["type"] for frame in frames].count("complete") == 1
    assert terminal == {"kind": "terminal", "status": "completed", "result": "echo: hello wide world"}


async def test_many_words_are_not_merged_for_a_reader_that_keeps_up() -> None:
    """Whoever counts tokens would count wrong (B51)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask(" ".join(f"w{number}" for number in range(20_000)))
    assert tokens(frames) == [f"w{number} " for number in range(20_000)]
    assert terminal["status"] == "completed"


async def test_nothing_to_say_is_said_too() -> None:
    """An empty assignment would hang, or fail (B51)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask("")
    assert tokens(frames) == []
    assert terminal == {"kind": "terminal", "status": "completed", "result": "echo: "}


async def test_words_that_are_done_are_not_said() -> None:
    """The result would hold commands (frames: the executor contract)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask("a __sleep_ms:1 b __ignore_cancel c")
    assert tokens(frames) == ["a ", "b ", "c "]
    assert terminal["result"] == "echo: a b c"


async def test_steer_waits_for_a_message_and_says_it_in_its_place() -> None:
    """Steering could not be tried out (B54)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        await peer.run("before __steer after")
        assert await peer.event() == {"type": "token", "content": "before "}
        await peer.send("message", text="turn left")
        frames, terminal = await peer.terminal()
    assert tokens(frames) == ["turn ", "left ", "after "]
    assert terminal["result"] == "echo: before turn left after"


@pytest.mark.parametrize("approved", [True, False])
async def test_approve_asks_the_host_and_says_the_answer(approved: bool) -> None:
    """Approvals could not be tried out (B55)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        await peer.run("__approve:/etc/passwd done")
        request = await peer.next()
        assert request["kind"] == "approval_request"
        assert set(request["body"]) == {"tool_name", "permission_type", "resource", "question"}
        assert request["body"]["resource"] == "/etc/passwd"
        await peer.send("approval_reply", id=request["id"], approved=approved)
        frames, terminal = await peer.terminal()
    assert tokens(frames) == [f"approved:{str(approved).lower()} ", "done "]
    assert terminal["status"] == "completed"


async def test_fail_raises() -> None:
    """An executor that fails could not be tried out (B58)."""
    async with own_worker() as worker, PlainPeer(worker.url) as peer:
        frames, terminal = await peer.ask("a __fail b")
    assert tokens(frames) == ["a "]
    assert terminal["status"] == "error"
    assert "__fail" in terminal["error"]


async def test_a_windlass_peer_gets_run_events() -> None:
    """Our own parent would have to guess messages from tokens."""
    async with own_worker() as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("a b")
        frames, terminal = await peer.terminal()
    assert run_events(frames) == ["message_start", "delta", "delta", "message_end"]
    assert frames[1]["event"]["text"] == "a "
    assert terminal["result"] == "echo: a b"
    assert (terminal["run_id"], terminal["attempt"]) == ("run_1", 1)
