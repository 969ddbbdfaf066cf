"""The three modes of a worker, in real processes: who is served, and when it leaves."""

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.fleet.full_peer import FullPeer
from tests.fleet.own_worker import WorkerProcess
from tests.fleet.plain_peer import PlainPeer, tokens


async def knock(worker: WorkerProcess) -> None:
    """A connection of each bad kind: refused, broken off, silent, and nonsense."""
    place = urlsplit(worker.url)
    with pytest.raises(aiohttp.WSServerHandshakeError):
        async with PlainPeer(worker.url + "x"):
            pass
    _, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(b"\x00\xff nonsense\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    async with PlainPeer(worker.url):
        pass
    async with PlainPeer(worker.url) as peer:
        await peer.socket.send_str("nonsense")


# -- one ---------------------------------------------------------------------------------------------------------------


async def test_one_serves_a_connection_and_exits_0(tmp_path: Path) -> None:
    """A parent could not tell a worker that did its work from one that failed (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "one", forked=True) as worker:
        async with PlainPeer(worker.url) as peer:
            frames, terminal = await peer.ask("hello world")
        assert await worker.ended() == 0
    assert tokens(frames) == ["hello ", "world "]
    assert terminal["result"] == "echo: hello world"


async def test_one_gives_up_when_nobody_comes(tmp_path: Path) -> None:
    """A worker whose parent crashed before connecting would wait for ever (B50 B59)."""
    async with WorkerProcess(tmp_path, "--mode", "one", "--accept-timeout", "0.3", forked=True) as worker:
        assert await worker.ended() == 1
        assert "windlass: nobody connected" in worker.log()


async def test_an_active_connection_is_not_cut_by_the_accept_timeout(tmp_path: Path) -> None:
    """A parent that thinks before it assigns, or a run that takes its time, would lose its worker (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "one", "--accept-timeout", "0.5", forked=True) as worker:
        async with PlainPeer(worker.url) as peer:
            await peer.silent(1.0)
            _, terminal = await peer.ask("__sleep_ms:700 there")
            assert terminal["result"] == "echo: there"
        assert await worker.ended() == 0


async def test_a_bad_connection_does_not_use_up_the_one_slot(tmp_path: Path) -> None:
    """Whoever scans ports would take the worker away from its parent (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "one", forked=True) as worker:
        await knock(worker)
        async with PlainPeer(worker.url) as peer:
            assert (await peer.ask("mine"))[1]["result"] == "echo: mine"
        assert await worker.ended() == 0


async def test_a_bad_connection_does_not_reset_the_accept_clock(tmp_path: Path) -> None:
    """Somebody who knocks again and again would keep a forgotten worker alive (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "one", "--accept-timeout", "1.5", forked=True) as worker:
        begun = time.monotonic()
        while worker.process.poll() is None and time.monotonic() - begun < 10:
            try:
                await knock(worker)
            except (OSError, aiohttp.ClientError, AssertionError):
                pass  # it has just left
        assert await worker.ended() == 1
        assert time.monotonic() - begun < 5


async def test_a_nonsense_speaker_that_stays_does_not_hold_the_clock(tmp_path: Path) -> None:
    """One open connection that never says anything sensible would keep a worker for ever (B50)."""
    async with (
        WorkerProcess(tmp_path, "--mode", "one", "--accept-timeout", "0.5", forked=True) as worker,
        PlainPeer(worker.url) as peer,
    ):
        await peer.socket.send_str("nonsense")
        assert await worker.ended() == 1


async def test_the_one_worker_of_a_lost_parent_does_not_linger(tmp_path: Path) -> None:
    """It would work, and cost, for nobody (B57)."""
    async with WorkerProcess(tmp_path, "--mode", "one", forked=True) as worker, PlainPeer(worker.url) as peer:
        await peer.run("here __sleep_ms:60000")
        await peer.event()
        assert peer.socket._response.connection is not None
        peer.socket._response.connection.transport.abort()
        assert await worker.ended() == 0


# -- reusable ----------------------------------------------------------------------------------------------------------


async def test_reusable_serves_one_connection_after_the_other_in_one_process(tmp_path: Path) -> None:
    """A warm worker would be no warmer than a new one (B50 B60)."""
    async with WorkerProcess(tmp_path, "--mode", "reusable", forked=True) as worker:
        for number in range(3):
            async with PlainPeer(worker.url) as peer:
                assert (await peer.ask(f"run {number}"))[1]["result"] == f"echo: run {number}"
        assert worker.process.poll() is None


async def test_a_second_connection_waits_for_the_first_to_go(tmp_path: Path) -> None:
    """Two assignments would run at once in a process that is for one (B50)."""
    async with (
        WorkerProcess(tmp_path, "--mode", "reusable", forked=True) as worker,
        PlainPeer(worker.url) as first,
        PlainPeer(worker.url) as second,
    ):
        await second.run("second")
        await second.silent()
        assert (await first.ask("first"))[1]["result"] == "echo: first"
        await second.silent()
        await first.socket.close()
        assert (await second.terminal())[1]["result"] == "echo: second"


async def test_a_waiting_windlass_peer_is_greeted_and_kept_alive(tmp_path: Path) -> None:
    """It would take the worker for dead while it waits for its turn."""
    async with (
        WorkerProcess(tmp_path, "--mode", "reusable", forked=True) as worker,
        PlainPeer(worker.url) as first,
        FullPeer(worker.url) as second,
    ):
        await second.greet()
        await second.run("mine")
        await second.socket.ping(b"there?")
        await second.silent()
        await first.socket.close()
        assert (await second.terminal())[1]["result"] == "echo: mine"


async def test_a_nonsense_speaker_loses_its_turn_to_whoever_waits(tmp_path: Path) -> None:
    """A connection that makes no sense would keep a worker from everyone else (B50)."""
    async with (
        WorkerProcess(tmp_path, "--mode", "reusable", forked=True) as worker,
        PlainPeer(worker.url) as bad,
        PlainPeer(worker.url) as good,
    ):
        await good.run("good")
        await good.silent(0.1)
        await bad.socket.send_str("nonsense")
        assert (await good.terminal())[1]["result"] == "echo: good"
        await bad.run("sorry")
        await good.socket.close()
        assert (await bad.terminal())[1]["result"] == "echo: sorry"


async def test_reusable_exits_0_when_idle(tmp_path: Path) -> None:
    """Warm workers would pile up (B50)."""
    async with (
        WorkerProcess(tmp_path, "--mode", "reusable", "--idle-timeout", "0.5", forked=True) as worker,
        PlainPeer(worker.url) as peer,
    ):
        await peer.ask("x")
        assert await worker.ended() == 0  # a connection that stays open without a run is idle too


async def test_an_active_run_is_not_cut_by_the_idle_clock(tmp_path: Path) -> None:
    """A run that takes longer than a person's pause would be lost (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "reusable", "--idle-timeout", "0.3", forked=True) as worker:
        async with PlainPeer(worker.url) as peer:
            assert (await peer.ask("__sleep_ms:1000 done"))[1]["result"] == "echo: done"
        assert await worker.ended() == 0


async def test_a_bad_connection_does_not_reset_the_idle_clock(tmp_path: Path) -> None:
    """Somebody who knocks again and again would keep it for ever (B50)."""
    async with WorkerProcess(tmp_path, "--mode", "reusable", "--idle-timeout", "1.5", forked=True) as worker:
        begun = time.monotonic()
        while worker.process.poll() is None and time.monotonic() - begun < 10:
            try:
                await knock(worker)
            except (OSError, aiohttp.ClientError, AssertionError):
                pass
        assert await worker.ended() == 0, worker.log()
        assert time.monotonic() - begun < 5


LEAVES_TRACES = """
import asyncio, os, threading
from windlass.wire.execution import RunOutcome

class Traces:
    async def run(self, spec, events, steer, cancel):
        if spec.prompt == "thread":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        if spec.prompt == "mess":
            os.environ["LEFT"] = "behind"
            os.environ.pop("HOME", None)
            os.chdir("/")
            await asyncio.to_thread(len, "a thread of the pool")
            Traces.task = asyncio.create_task(asyncio.sleep(3600))
        left = getattr(Traces, "task", None)
        seen = [os.environ.get("LEFT"), "HOME" in os.environ, os.getcwd(), left is not None and left.cancelled()]
        return RunOutcome("completed", transcript=seen)
"""


async def test_nothing_of_a_run_is_carried_over_to_the_next(tmp_path: Path) -> None:
    """The next assignment would run in another directory, with another's secrets in its environment (B60)."""
    (tmp_path / "traces.py").write_text(LEAVES_TRACES)
    async with WorkerProcess(tmp_path, "--mode", "reusable", executor="traces:Traces", forked=True) as worker:
        for assignment, seen in (("mess", ["behind", False, "/", False]), ("look", [None, True, str(tmp_path), True])):
            async with PlainPeer(worker.url) as peer:
                assert (await peer.ask(assignment))[1]["transcript"] == seen


async def test_a_worker_that_cannot_be_cleaned_takes_no_other_assignment(tmp_path: Path) -> None:
    """A thread of the last run would go on working beside the next one (B60)."""
    (tmp_path / "traces.py").write_text(LEAVES_TRACES)
    async with WorkerProcess(tmp_path, "--mode", "reusable", executor="traces:Traces", forked=True) as worker:
        async with PlainPeer(worker.url) as peer:
            assert (await peer.ask("thread"))[1]["status"] == "completed"
            assert await peer.closed() == 1001
        assert await worker.ended() == 0
