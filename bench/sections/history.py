"""Whether the past costs: opening a long session, replaying a long log, a run after many others, a long message."""

import asyncio
import socket
import time
from pathlib import Path

from bench import directive, provider, seeding
from bench.plan import Plan
from bench.rows import Row, percentile
from bench.wire import Tap, Wire, tap, wire
from bench.world import World, world

_NAME = "history"
_GROUP = 20  # runs whose median is compared
_FLAT = 1.2  # a run may cost this much more after many others: below it is noise
_LINEAR = 2.1  # bytes of a message twice as long
_LONG_MESSAGE_RATE = 1_000
_WORD = 4  # characters of a token
_SLOW_SESSIONS = 20
_RECEIVE_BYTES = 1024 * 1024
_REPLAY_SECONDS = 60.0
_OPENINGS = 5


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with world(scratch, name=_NAME) as here:
        rows = await _many_runs(here, plan)
        rows += await _bytes(here, plan)
        source, target = await here.new_sessions(2)
        (run,) = await here.prompt_all([source], directive.stream(100, 0))
        await here.api.run_over(run)
        workspace = here.api.workspace_id
        data_dir = here.server.data_dir
    head = seeding.repeat_facts(data_dir, workspace, plan.facts)
    seeding.repeat_messages(data_dir, workspace, source, target, plan.messages)
    async with world(scratch, name=_NAME) as here:
        return [await _open(here, plan, target), await _replay(here, plan, head), *rows]


# -- a run after many others ------------------------------------------------------------------------------------------


async def _many_runs(here: World, plan: Plan) -> list[Row]:
    """CPU of a run: the first ones, those after many in one session, and one in a new session after all of these."""
    group = min(_GROUP, plan.runs)
    async with wire(here.port, here.server.token) as requests, tap(here) as events:
        first = await _runs(here, requests, events, await here.new_sessions(2 * group))
        (busy,) = await here.new_sessions(1)
        same = await _runs(here, requests, events, [busy] * plan.runs)
        new = await _runs(here, requests, events, await here.new_sessions(group))
    begin, later, end = (percentile(sorted(kept[-group:]), 0.5) for kept in (first, new, same))
    note = "bare: one of the first runs"
    return [
        Row(
            name=f"CPU of a run after {plan.runs} others",
            value=later,
            unit="ms",
            bare=begin,
            aim=begin * _FLAT,
            note=note,
        ),
        Row(
            name=f"CPU of run {plan.runs} of one session", value=end, unit="ms", bare=begin, note="it is sent all of it"
        ),
    ]


async def _runs(here: World, requests: Wire, events: Tap, sessions: list[str]) -> list[float]:
    """One short run after another; milliseconds of CPU of each."""
    path = f"/v1/workspaces/{here.api.workspace_id}/agent?client_id={here.api.client_id}"
    spent = []
    for session in sessions:
        before = here.cpu()
        prompt = {"session_id": session, "prompt": directive.stream(5, 0)}
        _, _, answer = await requests.timed("POST", path, prompt, expect=202)
        await events.until(b'"type":"run_complete"', answer["run_id"].encode())
        spent.append((here.cpu() - before) * 1000)
    return spent


# -- bytes on the wire ------------------------------------------------------------------------------------------------


async def _bytes(here: World, plan: Plan) -> list[Row]:
    """What one client is sent of a long message, of one half as long, and of words that come one at a time."""
    await here.attach(1)
    half = await _message_bytes(here, plan.long_message // 2)
    whole = await _message_bytes(here, plan.long_message)
    slow = await _slow_bytes(here, plan)
    await here.crowd.ask("leave")
    word = len(provider.event(b'{"content":"%b"}' % (b"x" * _WORD)))
    name = f"bytes for a message of {plan.long_message:,} tokens"
    note = f"{_LONG_MESSAGE_RATE:,} tokens/s; bare: as the provider sends it"
    return [
        Row(name=name, value=whole / 1000, unit="kB", bare=word * plan.long_message / 1000, note=note),
        Row(name="the same against half as many tokens", value=whole / half, unit="times", bare=2.0, aim=_LINEAR),
        Row(name=f"bytes per token at {plan.rate} tokens/s", value=slow, unit="bytes", bare=float(word)),
    ]


async def _message_bytes(here: World, tokens: int) -> int:
    (session,) = await here.new_sessions(1)
    await here.crowd.ask("reset")
    async with tap(here) as events:
        (run,) = await here.prompt_all([session], directive.stream(tokens, _LONG_MESSAGE_RATE, _WORD))
        await events.until(b'"type":"run_complete"', run.encode())
    return int((await here.crowd.ask("report"))["bytes"])


async def _slow_bytes(here: World, plan: Plan) -> float:
    """Bytes per token while several sessions stream at the pace of a person who reads."""
    sessions = await here.new_sessions(_SLOW_SESSIONS)
    runs = await here.prompt_all(sessions, directive.stream(plan.rate * 60, plan.rate, _WORD))
    await asyncio.sleep(plan.warm_seconds)
    await here.crowd.ask("reset")
    await asyncio.sleep(plan.window_seconds)
    report = await here.crowd.ask("report")
    for run in runs:
        await here.api.ok("POST", f"W/runs/{run}/cancel?client_id={here.api.client_id}")
        await here.api.run_over(run)
    return float(report["bytes"] / (plan.rate * _SLOW_SESSIONS * report["seconds"]))


# -- the long past ----------------------------------------------------------------------------------------------------


async def _open(here: World, plan: Plan, session: str) -> Row:
    path = f"/v1/workspaces/{here.api.workspace_id}/sessions/{session}/messages?limit={plan.messages}"
    took = []
    async with wire(here.port, here.server.token) as requests:
        for _ in range(_OPENINGS):
            _, milliseconds, messages = await requests.timed("GET", path, expect=200)
            if len(messages) != plan.messages:
                raise RuntimeError(f"{len(messages)} messages were served instead of {plan.messages}")
            took.append(milliseconds)
    bare = _bare_read(here, "SELECT body FROM messages WHERE session = ? ORDER BY number, position", session)
    name = f"opening a session of {plan.messages:,} messages"
    return Row(name=name, value=percentile(sorted(took), 0.5), unit="ms", bare=bare, note="bare: the same rows read")


async def _replay(here: World, plan: Plan, head: int) -> Row:
    took = await asyncio.to_thread(_read_until, here.port, here.stream_request(after="0"), b".%d\n" % head)
    bare = _bare_read(here, "SELECT body FROM facts WHERE workspace = ? ORDER BY seq", here.api.workspace_id)
    return Row(
        name=f"replay of {plan.facts:,} facts", value=took, unit="ms", bare=bare, note="bare: the same rows read"
    )


def _read_until(port: int, request: bytes, last: bytes) -> float:
    """Read as fast as it comes until the event with this id; milliseconds."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=_REPLAY_SECONDS) as connection:
        connection.sendall(request)
        tail = b""
        while received := connection.recv(_RECEIVE_BYTES):
            if last in tail + received:
                return (time.monotonic() - began) * 1000
            tail = received[-len(last) :]
    raise RuntimeError("the stream ended before its last event")


def _bare_read(here: World, query: str, argument: str) -> float:
    with seeding.journal(here.server.data_dir) as database:
        began = time.monotonic()
        size = len(b"\n".join(bytes(body) for (body,) in database.execute(query, (argument,))))
        assert size
        return (time.monotonic() - began) * 1000
