"""What a worker bears: peers that stall, executors that do not stop, and many at once."""

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import structlog

from tests.fleet.full_peer import FullPeer
from tests.fleet.own_worker import WorkerProcess, own_worker
from tests.fleet.plain_peer import PlainPeer, within
from windlass import limits
from windlass.fleet.worker.echo import EchoExecutor
from windlass.fleet.worker.websocket import TEXT, Message, MessageReader, frame
from windlass.fleet.worker.worker import WorkerAddress
from windlass.wire.execution import Cancel, Events, PermissionAsk, RunOutcome, RunSpec, Steer
from windlass.wire.messages import Text, TextData
from windlass.wire.run_events import Delta, MessageStart, Step

# -- executors that do not stop ----------------------------------------------------------------------------------------


class _ToldEcho(EchoExecutor):
    """Knows one word more: `__until:MOMENT` waits until the test, or the end of the first run, says that it is there.

    The moments are `release`, which the test sets, and `over`, which the end of a run that is deaf sets.
    """

    release: asyncio.Event
    over: asyncio.Event

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        try:
            return await super().run(spec, events, steer, cancel)
        finally:
            if self._is_deaf:
                self.over.set()

    async def _obey(self, word: str, events: Events, steer: Steer, cancel: Cancel) -> str:
        name, _, moment = word.partition(":")
        if name != "__until":
            return await super()._obey(word, events, steer, cancel)
        await self._wait(getattr(self, moment).wait(), cancel)
        return ""


@contextlib.asynccontextmanager
async def told_worker() -> AsyncIterator[WorkerAddress]:
    """One of _ToldEcho. Its deaf run is released and waited for at the end: nothing may be left on the test's loop."""
    _ToldEcho.release, _ToldEcho.over = asyncio.Event(), asyncio.Event()
    async with own_worker(_ToldEcho) as worker:
        yield worker
        _ToldEcho.release.set()
        await within(_ToldEcho.over.wait())


async def test_an_executor_that_ignores_cancel_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent would wait for ever for a run it has cancelled (B58 I20)."""
    # With the limits as shipped: see the executor that blocks its thread, in test_worker_process.
    assert (limits.STOP_ASK_SECONDS, limits.STOP_ABORT_SECONDS) == (3, 3)
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.3)
    monkeypatch.setattr(limits, "STOP_ABORT_SECONDS", 0.3)
    async with told_worker() as worker, PlainPeer(worker.url) as peer:
        await peer.run("__ignore_cancel deaf __until:release over")
        await peer.event()
        begun = time.monotonic()
        await peer.send("cancel")
        assert await peer.terminal() == ([], {"kind": "terminal", "status": "cancelled"})
        assert 0.59 < time.monotonic() - begun < 5.9  # as shipped it takes six seconds
        # The link is as good as before, and nothing of the abandoned run is taken for the next one's (I21).
        await peer.run("next __until:over run")
        first = await peer.next()
        _ToldEcho.release.set()
        frames, terminal = await peer.terminal()
        frames.insert(0, first)
        assert [frame["event"].get("content") for frame in frames] == ["next ", "run ", None]
        assert terminal["result"] == "echo: next run"


async def test_a_superseded_run_that_ignores_it_holds_the_next_up_for_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run would never start, or start before the first one's end is told (B53 B58)."""
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.2)
    monkeypatch.setattr(limits, "STOP_ABORT_SECONDS", 0.2)
    async with told_worker() as worker, PlainPeer(worker.url) as peer:
        await peer.run("__ignore_cancel deaf __until:release")
        await peer.event()  # it is deaf from here on; superseded before, it would never begin
        await peer.run("second")
        assert await peer.next() == {"kind": "terminal", "status": "cancelled"}
        assert (await peer.terminal())[1]["result"] == "echo: second"


class _WatchesNoToken:
    """Waits for something, and has never heard of the token."""

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        events.emit(MessageStart("m", "assistant", parts=[Text(TextData("begun"))]))
        await asyncio.sleep(3600)
        return RunOutcome("completed")


async def test_an_executor_that_watches_no_token_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's plain coroutine could not be cancelled at all (B52 B58)."""
    assert limits.STOP_ASK_SECONDS == 3
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.3)
    async with own_worker(_WatchesNoToken) as worker, PlainPeer(worker.url) as peer:
        await peer.run("x")
        await peer.event()
        begun = time.monotonic()
        await peer.send("cancel")
        assert (await peer.terminal())[1]["status"] == "cancelled"
        assert 0.29 < time.monotonic() - begun < 2.8  # long before it would be abandoned


async def test_a_reusable_worker_with_an_abandoned_run_leaves(tmp_path: Path) -> None:
    """The next assignment would share its process with a run that does not end (B58 B60)."""
    bounds = {"STOP_ASK_SECONDS": 0.3, "STOP_ABORT_SECONDS": 0.3}
    async with WorkerProcess(tmp_path, "--mode", "reusable", bounds=bounds) as worker:
        async with PlainPeer(worker.url) as peer:
            await peer.run("__ignore_cancel deaf __sleep_ms:60000")
            await peer.event()
            await peer.send("cancel")
            assert (await peer.terminal())[1]["status"] == "cancelled"
            assert await peer.closed() == 1001
        assert await worker.ended() == 0


# -- peers that do not read --------------------------------------------------------------------------------------------


class _Talks:
    """Emits text for as long as it is let, as fast as it can."""

    stopped: asyncio.Event

    async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
        events.emit(MessageStart("m", "assistant"))
        total = int(spec.prompt)
        for number in range(total):
            if cancel.requested:
                break
            events.emit(Delta("m", 0, "text", f"{number:>9} " * 10))
            if number % 100 == 0:
                await asyncio.sleep(0)
        self.stopped.set()
        return RunOutcome("completed")


class _StalledPeer:
    """A plain peer on a bare socket, with a small receive buffer, that reads only when it is told to."""

    def __init__(self, worker: WorkerAddress) -> None:
        self._place = urlsplit(worker.url)
        self.read: list[bytes] = []

    async def __aenter__(self) -> "_StalledPeer":
        assert self._place.hostname is not None and self._place.port is not None
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        await self._loop.sock_connect(self._socket, (self._place.hostname, self._place.port))
        await self._send(
            f"GET {self._place.path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += await self._loop.sock_recv(self._socket, 1)
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._socket.close()

    async def _send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def run(self, assignment: str) -> None:
        payload = f'{{"kind": "run", "assignment": "{assignment}"}}'.encode()
        await self._send(bytes([0x80 | TEXT, 0x80 | len(payload)]) + bytes(4) + payload)

    async def messages(self) -> list[bytes]:
        """Everything until a terminal, or until the worker hangs up."""
        reader, found = _ClientReader(), self.read
        with contextlib.suppress(ConnectionError):
            while data := await within(self._loop.sock_recv(self._socket, 1 << 20)):
                for message in reader.feed(data):
                    found.append(message.payload)
                    if b'"terminal"' in message.payload:
                        return found
        return found


class _ClientReader:
    """Messages from a server: not masked."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[Message]:
        self._buffer += data
        found = []
        while len(self._buffer) >= 10:
            length, start = self._buffer[1], 2
            if length == 126:
                length, start = int.from_bytes(self._buffer[2:4], "big"), 4
            elif length == 127:
                length, start = int.from_bytes(self._buffer[2:10], "big"), 10
            if len(self._buffer) < start + length:
                break
            found.append(Message(self._buffer[0] & 0x0F, self._buffer[start : start + length]))
            self._buffer = self._buffer[start + length :]
        return found


async def test_text_for_a_peer_that_stalls_is_merged_and_complete() -> None:
    """A slow parent would cost memory without bound, or lose words (frames: tokens may be merged, nothing dropped)."""
    _Talks.stopped = asyncio.Event()
    async with own_worker(_Talks) as worker, _StalledPeer(worker) as peer:
        await peer.run("100000")
        await within(_Talks.stopped.wait())
        messages = await within(peer.messages())
    text = b"".join(part for message in messages[:-1] for part in [message.split(b'"content":"')[-1].split(b'"')[0]])
    assert text == b"".join((b"%9d " % number) * 10 for number in range(100_000))
    assert len(messages) < 60_000  # far fewer than were emitted: merged
    assert b'"completed"' in messages[-1]


async def test_a_peer_that_never_reads_loses_its_link_and_its_run() -> None:
    """Its run would fill the machine's memory (I14 in spirit: slowness costs the slow one only)."""
    _Talks.stopped = asyncio.Event()
    with structlog.testing.capture_logs() as logs:
        async with own_worker(_Talks) as worker, _StalledPeer(worker) as stalled, PlainPeer(worker.url) as other:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            await stalled.run("100000000")
            await other.run("10")
            begun = time.monotonic()
            assert (await other.terminal())[1]["status"] == "completed"
            assert time.monotonic() - begun < 5  # others are not delayed
            _Talks.stopped.clear()
            await within(_Talks.stopped.wait(), 60)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert any(entry["event"].startswith("link ended: the parent does not read") for entry in logs)
    assert grown < 200_000  # KiB


async def test_events_that_cannot_be_merged_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps, parts and usages for a parent that stalls would pile up (I20)."""
    monkeypatch.setattr(limits, "WORKER_OUTBOX_FRAMES", 5_000)

    class Steps:
        async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
            number = 0
            while not cancel.requested:
                number += 1
                events.emit(Step(number))
                if number % 100 == 0:
                    await asyncio.sleep(0.001)
            stopped.set()
            return RunOutcome("canceled")

    stopped = asyncio.Event()
    async with own_worker(Steps) as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("x")
        await peer.next()
        assert peer.socket._response.connection is not None
        peer.socket._response.connection.transport.pause_reading()
        await within(stopped.wait(), 60)
        peer.socket._response.connection.transport.abort()


async def test_control_frames_overtake_events_that_wait() -> None:
    """A question to a person would wait behind a flood of words nobody reads yet (B52)."""

    class Floods:
        async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
            events.emit(MessageStart("m", "assistant"))
            for number in range(200_000):
                events.emit(Delta("m", 0, "text", f"{number:>9} " * 10))
                if number % 100 == 0:
                    await asyncio.sleep(0)
            asking.set()
            await events.approve(PermissionAsk("c", "t", "a", "May I?", "/", "/"))
            return RunOutcome("completed")

    asking = asyncio.Event()
    async with own_worker(Floods) as worker, _StalledPeer(worker) as peer:
        await peer.run("x")
        await within(asking.wait(), 60)
        await asyncio.sleep(0.2)  # until the request has reached the outbox
        kinds = []
        reader = _ClientReader()
        while not kinds or kinds[-1] != "approval_request":
            data = await within(peer._loop.sock_recv(peer._socket, 1 << 16))
            assert data, f"the link ended after {len(kinds)} frames"
            for message in reader.feed(data):
                kinds.append("approval_request" if b"approval_request" in message.payload else "event")
                if kinds[-1] == "approval_request":
                    break
        left = await within(peer._loop.sock_recv(peer._socket, 1 << 16))
        assert b'"token"' in left


async def test_nothing_of_a_superseding_run_overtakes_the_terminal_before_it() -> None:
    """A peer that is behind would take the new run's question for the old one's (B53 I21)."""

    class Floods:
        async def run(self, spec: RunSpec, events: Events, steer: Steer, cancel: Cancel) -> RunOutcome:
            if spec.prompt == "ask":
                await events.approve(PermissionAsk("c", "t", "a", "May I?", "/", "/"))
                return RunOutcome("completed")
            events.emit(MessageStart("m", "assistant"))
            for number in range(100_000):
                events.emit(Delta("m", 0, "text", f"{number:>9} " * 10))
                if number % 100 == 0:
                    await asyncio.sleep(0)
            flooded.set()
            await cancel.wait()
            ended.set()
            return RunOutcome("canceled")

    flooded, ended = asyncio.Event(), asyncio.Event()
    async with own_worker(Floods) as worker, _StalledPeer(worker) as peer:
        await peer.run("flood")
        await within(flooded.wait(), 60)
        await peer.run("ask")
        await within(ended.wait())
        await asyncio.sleep(0.2)  # in which the second run could begin, if it did not wait
        assert b'"cancelled"' in (await within(peer.messages()))[-1]
        assert all(b"approval_request" not in message for message in peer.read)


async def test_a_plain_peer_that_reads_late_is_not_held_to_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that awaits a person inside its read loop would lose its run (frames: two dialects)."""
    monkeypatch.setattr(limits, "LINK_PING_SECONDS", 0.05)
    monkeypatch.setattr(limits, "LINK_SILENCE_SECONDS", 0.2)
    async with own_worker() as worker, PlainPeer(worker.url, autoping=False) as peer:
        await peer.run("__sleep_ms:600 late")
        await asyncio.sleep(0.6)  # says nothing, reads nothing
        assert (await peer.terminal())[1]["result"] == "echo: late"


async def test_a_windlass_peer_that_falls_silent_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker would wait for ever for a parent whose machine has lost its power (B57)."""
    monkeypatch.setattr(limits, "LINK_PING_SECONDS", 0.05)
    monkeypatch.setattr(limits, "LINK_SILENCE_SECONDS", 1.0)
    _Talks.stopped = asyncio.Event()
    async with own_worker() as worker:
        async with FullPeer(worker.url) as alive:
            await alive.greet()
            await alive.run("__sleep_ms:1500 alive")  # aiohttp answers pings while it reads
            assert (await alive.terminal())[1]["result"] == "echo: alive"
        async with FullPeer(worker.url, autoping=False) as dead:
            await dead.greet()
            await dead.run("__sleep_ms:60000")
            with pytest.raises(AssertionError):
                while True:
                    message = await dead.socket.receive(5)
                    assert message.type.name == "PING"


async def test_a_windlass_peer_that_says_no_hello_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that never begins would hold a place for ever."""
    monkeypatch.setattr(limits, "WORKER_HELLO_SECONDS", 0.2)
    async with own_worker() as worker, FullPeer(worker.url) as peer:
        assert (await peer.next())["kind"] == "hello"
        assert await peer.closed() == 1008


async def test_a_plain_peer_may_be_silent_for_its_ten_minutes_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that never assigns anything would hold a place for ever."""
    assert limits.WORKER_PLAIN_SILENCE_SECONDS == 600
    monkeypatch.setattr(limits, "WORKER_PLAIN_SILENCE_SECONDS", 0.4)
    async with own_worker() as worker, PlainPeer(worker.url) as used, PlainPeer(worker.url) as silent:
        await used.ask("x")
        assert await silent.closed() == 1008
        assert (await used.ask("after its first run it has all the time"))[1]["status"] == "completed"


# -- many --------------------------------------------------------------------------------------------------------------


async def test_two_hundred_runs_at_once_through_one_service(tmp_path: Path) -> None:
    """One parent's run would wait for another's, or hear its words (B50 B56)."""

    async def one(number: int) -> str:
        async with PlainPeer(worker.url) as peer:
            _, terminal = await peer.ask(f"run{number} __sleep_ms:500 of {number}")
            return str(terminal["result"])

    async with WorkerProcess(tmp_path, "--mode", "service") as worker:
        begun = time.monotonic()
        results = await asyncio.gather(*(one(number) for number in range(200)))
        took = time.monotonic() - begun
    assert results == [f"echo: run{number} of {number}" for number in range(200)]
    assert took < 30


async def test_too_many_superseding_runs_end_the_link() -> None:
    """A loop in a parent would fill the worker with assignments that never run (I20)."""
    async with told_worker() as worker, PlainPeer(worker.url) as peer:
        await peer.run("__ignore_cancel deaf __until:release")
        await peer.event()  # it is deaf from here on; superseded before, it would never begin
        for _ in range(limits.WORKER_WAITING_RUNS):
            await peer.run("x")
        assert await peer.closed() == 1008


async def test_messages_that_a_run_does_not_take_are_bounded() -> None:
    """A loop in a parent would fill the worker's memory; and nobody would know which were lost."""
    async with own_worker() as worker, FullPeer(worker.url) as peer:
        await peer.greet()
        await peer.run("__sleep_ms:60000")
        for number in range(limits.WORKER_STEERS + 1):
            await peer.send("message", run_id="run_1", attempt=1, id=f"m{number}", text="x")
        assert (await peer.until("undelivered"))["id"] == f"m{limits.WORKER_STEERS}"
        await peer.send("cancel", run_id="run_1", attempt=1)
        frames, _ = await peer.terminal()
        lost = [frame["id"] for frame in frames if frame["kind"] == "undelivered"]
        assert lost == [f"m{number}" for number in range(limits.WORKER_STEERS)]


# -- the codec ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_001])
@pytest.mark.parametrize("cut", [1, 7, 65_536])
def test_messages_come_whole_however_they_are_cut(size: int, cut: int) -> None:
    """What the network cuts in two would be read as two, or as nonsense."""
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    plain = frame(TEXT, payload)
    mask = b"\x12\x34\x56\x78"
    head = plain[: len(plain) - size]
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    wire = (bytes([head[0], head[1] | 0x80]) + head[2:] + mask + masked) * 2
    reader = MessageReader(limits.LINK_FRAME_BYTES)
    found = [message for at in range(0, len(wire), cut) for message in reader.feed(wire[at : at + cut])]
    assert found == [Message(TEXT, payload)] * 2
