"""Links that break, stall, or carry what no honest worker would say: the run ends, in time, with a reason."""

import asyncio
import json
import os
import socket
import sys
import time
import uuid
from typing import Any

import pytest
import uvloop
from aiohttp import web

from tests.fleet.recorder import World
from tests.fleet.scripted_worker import Script, Talk, scripted_worker, served
from windlass import limits
from windlass.fleet.parent.link import RemoteExecutor
from windlass.testing.processes import stand_still
from windlass.wire.execution import RunOutcome

BODY = {"tool_name": "bash", "permission_type": "execute", "resource": "ls", "question": "Run ls?"}


async def run(url: str, world: World, secret: str = "") -> RunOutcome:
    async with asyncio.timeout(20):
        return await RemoteExecutor(url, secret).run(world.spec, world.events, world.steer, world.cancel)


async def ends_as(script: Script, *, plain: bool = False, world: World | None = None) -> RunOutcome:
    async with scripted_worker(script, plain=plain) as url:
        return await run(url, world or World())


# -- lost -------------------------------------------------------------------------------------------------------------

WORKER = """
import asyncio, json, sys
from aiohttp import web

async def serve(request):
    socket = web.WebSocketResponse(protocols=["windlass.1"])
    await socket.prepare(request)
    await socket.receive()
    await socket.send_str(json.dumps({"kind": "hello", "version": 1}))
    run = json.loads((await socket.receive()).data)
    named = {"run_id": run["run_id"], "attempt": run["attempt"]}
    event = {"type": "message_start", "message_id": "m1", "role": "assistant"}
    await socket.send_str(json.dumps({"kind": "event", "seq": 1, "event": event, **named}))
    await asyncio.Event().wait()

async def main():
    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_worker_that_is_killed_in_mid_run_interrupts_it() -> None:
    """I20: the run would wait for a process that is gone."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    world = World()
    running = asyncio.create_task(run(f"ws://127.0.0.1:{port}", world))
    await world.events.until(lambda: bool(world.events.events))
    began = time.monotonic()
    process.kill()
    outcome = await running
    await process.wait()
    assert outcome.status == "interrupted"
    assert "The worker was lost" in outcome.error
    assert time.monotonic() - began < 5


async def test_a_stalled_worker_is_lost_after_its_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on a machine that was unplugged would keep its run for ever. It is stopped here: alive, and silent."""
    monkeypatch.setattr(limits, "LINK_PING_SECONDS", 0.05)
    monkeypatch.setattr(limits, "LINK_SILENCE_SECONDS", 1.0)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    world = World()
    running = asyncio.create_task(run(f"ws://127.0.0.1:{port}", world))
    await world.events.until(lambda: bool(world.events.events))
    await stand_still(process.pid)
    try:
        outcome = await running
    finally:
        process.kill()
        await process.wait()
    assert outcome.status == "interrupted"
    assert "nothing was heard of it" in outcome.error


async def test_a_worker_that_answers_pings_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that thinks for two minutes would be taken for a lost worker."""
    monkeypatch.setattr(limits, "LINK_PING_SECONDS", 0.02)
    monkeypatch.setattr(limits, "LINK_SILENCE_SECONDS", 1.0)

    async def script(talk: Talk) -> None:
        await talk.start()
        listening = asyncio.create_task(talk.gone())  # answers nothing by itself, so:
        talk.socket._autoping = True
        await asyncio.sleep(1.5)  # the silence itself is what is tried
        await talk.terminal()
        await listening

    assert (await ends_as(script)).status == "completed"


async def test_a_link_closed_without_a_terminal_interrupts_the_run() -> None:
    """I20: a run whose worker left would be told as done."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "half an ans")
        await talk.socket.close()

    world = World()
    assert (await ends_as(script, world=world)).status == "interrupted"
    assert world.events.text == "half an ans"


async def test_a_lost_link_takes_its_questions_with_it() -> None:
    """B55 I11: a person would be asked by a worker that is gone."""
    world = World()
    world.events.people.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", id=f"sa-{uuid.uuid4()}", body=BODY)
        await world.events.until(lambda: bool(world.events.asked))
        await talk.socket.close()

    assert (await ends_as(script, world=world)).status == "interrupted"
    assert world.events.withdrawn == 1


async def test_a_worker_that_never_reads_does_not_hold_up_a_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """B58 I19: the cancel would wait behind megabytes that nobody takes, and our socket stay open for them."""
    monkeypatch.setattr(limits, "STOP_ASK_SECONDS", 0.2)
    world = World("x" * (7 * limits.MIB))
    over = asyncio.Event()
    open_before = 0

    async def script(talk: Talk) -> None:
        nonlocal open_before
        await talk.receive("hello")
        transport = talk.request.transport
        assert transport is not None
        # Or the kernel would take all of it, and nothing would wait in our process.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        transport.pause_reading()
        await talk.send(kind="hello", version=1)
        await world.steer.begun.wait()
        open_before = _open_descriptors()
        world.cancel.set()
        await over.wait()

    async with scripted_worker(script) as url:
        outcome = await run(url, world)
        await asyncio.sleep(0)  # a transport closes its socket in the next round of the loop
        assert (outcome.status, _open_descriptors()) == ("canceled", open_before - 1)
        over.set()


def _open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_works_on_uvloop() -> None:
    """A server runs on uvloop: its transports are others than those of asyncio."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.message("m1", "one")
        await talk.terminal()
        await talk.gone()

    async def lost(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("nonsense")
        await talk.gone()

    async def story() -> tuple[str, str]:
        return (await ends_as(script)).status, (await ends_as(lost)).status

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(story()) == ("completed", "failed")


# -- nobody, or somebody else -----------------------------------------------------------------------------------------


async def test_nobody_there_is_a_clear_error() -> None:
    """A wrong address would look like a bug."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response()

    async with served(refuse) as url:
        pass
    outcome = await run(f"{url}/the-secret", World())
    assert (outcome.status, url in outcome.error, "the-secret" in outcome.error) == ("failed", True, False)


async def test_a_wrong_secret_is_a_clear_error() -> None:
    """A person would look for the fault in the network."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401)

    async with served(refuse) as url:
        outcome = await run(f"{url}/the-secret", World(), "wrong")
    assert (outcome.status, "refused our secret" in outcome.error) == ("failed", True)
    assert "the-secret" not in outcome.error


@pytest.mark.parametrize("url", ["", "nonsense", "ws://", "ftp://127.0.0.1/the-secret"])
async def test_an_address_that_is_none_is_a_clear_error(url: str) -> None:
    """A typing error would end the run with a traceback."""
    outcome = await run(url, World())
    assert (outcome.status, "the-secret" in outcome.error) == ("failed", False)


async def test_a_redirect_is_refused() -> None:
    """A42: a worker could send our run, and our secret, to another machine."""
    reached: list[str] = []

    async def move(request: web.Request) -> web.Response:
        reached.append(request.path)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    async with served(move) as url:
        outcome = await run(url, World(), "secret")
    assert (outcome.status, reached) == ("failed", ["/"])
    assert "redirects" in outcome.error


@pytest.mark.parametrize("silent", ["upgrade", "hello"])
async def test_a_worker_that_does_not_answer_is_not_waited_for(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that takes connections and says nothing would hold a run for ever."""
    monkeypatch.setattr(limits, "LINK_CONNECT_SECONDS", 0.2)

    async def serve(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=["windlass.1"])
        if silent == "hello":
            await socket.prepare(request)
        await asyncio.Event().wait()
        return socket

    async with served(serve) as url:
        outcome = await run(url, World())
    assert outcome.status == "failed"
    assert "did not answer within 0.2 seconds" in outcome.error


async def test_a_cancel_while_connecting_leaves_nothing() -> None:
    """I19: a socket to a worker that never answered would stay open."""
    connected = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        connected.set()
        await asyncio.Event().wait()
        return web.Response()

    async with served(serve) as url:
        running = asyncio.create_task(run(url, World()))
        await connected.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


# -- what no honest worker says ---------------------------------------------------------------------------------------


async def fails(frame: Any, *, plain: bool = False) -> str:
    """The error of a run whose worker sends this after a good event. Text is sent as it is."""

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.event({"type": "step", "number": 1})
        named = {name: talk.run[name] for name in ("run_id", "attempt") if name in talk.run}
        await talk.socket.send_str(frame if isinstance(frame, str) else json.dumps({**named, **frame}))
        await talk.terminal()
        await talk.gone()

    outcome = await ends_as(script, plain=plain)
    assert outcome.status == "failed", outcome
    return outcome.error


STEP = {"type": "step", "number": 2}


@pytest.mark.parametrize(
    "frame",
    [
        "not json",
        "[]",
        "{}",
        '{"kind": "unknown"}',
        '{"kind": "event"}',
        "[" * 100_000,
        '{"kind": "' + "x" * 100_000 + '"}',
        {"kind": "run", "assignment": "the other way round"},
        {"kind": "hello"},
        {"kind": "event", "seq": 2, "event": {"type": "unknown"}},
        {"kind": "event", "seq": 2, "event": {"type": "step", "number": "two"}},
        {"kind": "event", "seq": 1, "event": STEP},
        {"kind": "event", "seq": 3, "event": STEP},
        {"kind": "event", "event": STEP},
        {"kind": "event", "seq": 2, "event": STEP, "run_id": "run_of_another"},
        {"kind": "event", "seq": 2, "event": STEP, "attempt": 2},
        {"kind": "terminal", "status": "completed", "run_id": "run_of_another"},
        {"kind": "terminal", "status": "completed", "run_id": "", "attempt": 0},
        {"kind": "terminal", "status": "splendid"},
        {"kind": "approval_request", "id": "sa-1", "body": BODY},
        {"kind": "approval_request", "id": "f1d7c1ae-5a0c-4b1e-9d55-0c6a1f6f3b11", "body": BODY},
        {"kind": "approval_request", "id": "sa-f1d7c1ae-5a0c-4b1e-9d55-0c6a1f6f3b11", "body": {}},
        {"kind": "approval_request", "id": "sa-f1d7c1ae-5a0c-4b1e-9d55-0c6a1f6f3b11", "body": BODY, "attempt": 9},
        {"kind": "agents_request", "id": "", "request": {"action": "list"}},
        {"kind": "agents_request", "id": "a1", "request": {"action": "conquer"}},
        {"kind": "event", "seq": 2, "event": {"type": "steer_taken", "run_id": "run_it_was_never_sent"}},
        {"kind": "event", "seq": 2, "event": {"type": "message_start", "message_id": "m1", "role": "user"}},
        {"kind": "event", "seq": 2, "event": {"type": "message_end", "message_id": "m9", "reason": "end_turn"}},
        {"kind": "event", "seq": 2, "event": {"type": "usage", "usage": {}, "cost": -5}},
        {"kind": "event", "seq": 2, "event": {"type": "usage", "usage": {"prompt_tokens": -1}}},
        {"kind": "error", "reason": "what is a run?"},
    ],
    ids=lambda frame: (frame if isinstance(frame, str) else json.dumps(frame))[:60],
)
async def test_nonsense_ends_the_link_with_a_reason(frame: Any) -> None:
    """A31 I21: a worker could speak for another run, forge a person's words, or lower its bill."""
    error = await fails(frame)
    assert ("protocol" in error or "did not understand" in error) and len(error) < 600


@pytest.mark.parametrize("frame", ["not json", '{"kind": "ack", "seq": 1}', '{"kind": "event", "event": []}'])
async def test_nonsense_of_a_plain_worker_ends_the_link_too(frame: str) -> None:
    """A worker of another protocol would be waited for."""
    assert "protocol" in await fails(frame, plain=True)


async def test_an_approval_id_is_used_once() -> None:
    """I10: an answer given for one thing would be taken for another."""
    id = f"sa-{uuid.uuid4()}"

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.send_of_run("approval_request", id=id, body=BODY)
        await talk.receive("approval_reply")
        await talk.send_of_run("approval_request", id=id, body=BODY)
        await talk.gone()

    assert "two requests" in (await ends_as(script)).error


async def test_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker in a loop would bury people in questions, and the server in tasks."""
    monkeypatch.setattr(limits, "LINK_PENDING_ASKS", 3)
    world = World()
    world.events.people.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        for _ in range(4):
            await talk.send_of_run("approval_request", id=f"sa-{uuid.uuid4()}", body=BODY)
        await talk.gone()

    assert "more than 3 requests" in (await ends_as(script, world=world)).error
    assert world.events.withdrawn <= 3


async def test_events_that_wait_for_the_disk_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that never waits for an ack would fill our memory."""
    monkeypatch.setattr(limits, "LINK_UNACKED_EVENTS", 3)
    world = World()
    world.events.disk.clear()

    async def script(talk: Talk) -> None:
        await talk.start()
        for number in range(5):
            await talk.event({"type": "step", "number": number}, durable=True)
        await talk.gone()

    async with scripted_worker(script) as url:
        running = asyncio.create_task(run(url, world))
        await world.events.until(lambda: len(world.events.events) == 3)
        world.events.disk.set()  # what was taken is committed before the run ends, whatever became of its link
        outcome = await running
    assert outcome.status == "failed"


async def test_an_oversized_frame_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A38: one frame could fill the server's memory."""
    monkeypatch.setattr(limits, "LINK_FRAME_BYTES", 64 * limits.KIB)

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.event({"type": "step", "number": 1}, padding="x" * 70_000)
        await talk.gone()

    outcome = await ends_as(script)
    assert (outcome.status, "protocol" in outcome.error) == ("failed", True)


async def test_an_oversized_transcript_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker could put anything of any size into our database."""
    monkeypatch.setattr(limits, "LINK_TRANSCRIPT_BYTES", 1_000)

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.terminal(transcript="x" * 1_000)
        await talk.gone()

    assert "transcript" in (await ends_as(script)).error


async def test_a_large_result_beside_a_small_transcript_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is the transcript's: a long answer would fail its run."""
    monkeypatch.setattr(limits, "LINK_TRANSCRIPT_BYTES", 1_000)

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.terminal(result="x" * 2_000, transcript="small")
        await talk.gone()

    assert (await ends_as(script)).status == "completed"


async def test_a_conversation_too_large_for_a_frame_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker would close the link on it, and the run would be told as lost, again and again."""
    monkeypatch.setattr(limits, "LINK_FRAME_BYTES", 10_000)

    async def script(talk: Talk) -> None:
        await talk.receive("hello")
        await talk.send(kind="hello", version=1)
        await talk.gone()

    outcome = await ends_as(script, world=World("x" * 10_000))
    assert (outcome.status, "too large" in outcome.error) == ("failed", True)


async def test_an_owner_that_refuses_an_event_ends_the_link() -> None:
    """The worker would go on with a run that its owner has already failed."""

    class Misbehaved(Exception):
        pass

    def refuse(event: object) -> None:
        raise Misbehaved

    world = World()
    world.events.emit = refuse  # type: ignore[method-assign]

    async def script(talk: Talk) -> None:
        await talk.start()
        await talk.event({"type": "step", "number": 1})
        await talk.gone()

    with pytest.raises(Misbehaved):
        await ends_as(script, world=world)


async def test_a_worker_that_talks_on_after_its_goodbye_does_not_hold_the_run_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B58: the run is over, and nobody would be told."""
    monkeypatch.setattr("windlass.limits.LINK_CLOSE_SECONDS", 0.5)

    async def talkative(talk: Any) -> None:
        await talk.start()
        await talk.terminal()
        for _ in range(50):
            await asyncio.sleep(0.1)  # it takes its time between two words
            if talk.socket._req.transport is None or talk.socket._req.transport.is_closing():
                return
            talk.socket._req.transport.write(b"\x81\x02{}")

    async with scripted_worker(talkative) as url:
        world = World()
        async with asyncio.timeout(4):
            outcome = await RemoteExecutor(url).run(world.spec, world.events, world.steer, world.cancel)
        assert outcome.status == "completed"
