"""How long one waits, on a server that has nothing else to do: for a durable 202, for the first token, for a cancel."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bench import directive, load
from bench.plan import Plan
from bench.rows import Row, spread
from bench.wire import Tap, Wire, tap, wire
from bench.world import World, world

_ROW_BYTES = 600  # about what the facts of an accepted prompt take together
_WARM_RUNS = 5  # the first ones load libraries and open connections


@dataclass
class Waits:
    """Milliseconds, one for each sample."""

    accepted: list[float] = field(default_factory=list)
    first_token: list[float] = field(default_factory=list)
    canceled: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)  # bare


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    async with world(scratch) as here, wire(here.port, here.server.token) as requests, tap(here) as events:
        sessions = await here.new_sessions(plan.samples + _WARM_RUNS)
        with bare_database(here.server.directory / "bare.db") as database:
            waits = Waits()
            for number, session in enumerate(sessions):
                if number == _WARM_RUNS:
                    waits = Waits()
                await _one_run(here, requests, events, session, plan, waits)
                # In turn with ours: how fast a disk syncs changes from second to second.
                waits.commit.append(bare_commit(database))
        requests_alone = await _bare_first_tokens(here, plan.samples)
    return [
        *_rows("durable 202", waits.accepted, waits.commit, "one SQLite commit", aim=5.0),
        *_rows("prompt to first token", waits.first_token, requests_alone, "a request to the provider", aim=10.0),
        *_rows("cancel to the terminal event", waits.canceled, waits.commit, "one SQLite commit"),
    ]


async def _one_run(here: World, requests: Wire, events: Tap, session: str, plan: Plan, waits: Waits) -> None:
    """Prompt, see the first token, cancel, see the end."""
    base = f"/v1/workspaces/{here.api.workspace_id}"
    query = f"?client_id={here.api.client_id}"
    prompt = {"session_id": session, "prompt": load.paced(plan.rate)}
    sent, took, answer = await requests.timed("POST", f"{base}/agent{query}", prompt, expect=202)
    waits.accepted.append(took)
    waits.first_token.append((await events.until(b'"message_delta"', session.encode()) - sent) * 1000)
    run = answer["run_id"]
    sent, _, _ = await requests.timed("POST", f"{base}/runs/{run}/cancel{query}", expect=202)
    waits.canceled.append((await events.until(b'"type":"run_complete"', run.encode()) - sent) * 1000)


@contextlib.contextmanager
def bare_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A table with the same promise about power cuts, on the same disk."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        yield database


def bare_commit(database: sqlite3.Connection) -> float:
    """Milliseconds of one row in one commit."""
    began = time.monotonic()
    database.execute("INSERT INTO rows (body) VALUES (?)", (b"x" * _ROW_BYTES,))
    return (time.monotonic() - began) * 1000


async def _bare_first_tokens(here: World, samples: int) -> list[float]:
    """The same HTTP library asks the same provider, without us."""
    took = []
    body = directive.stream(1, 0).encode()
    async with aiohttp.ClientSession() as session:
        for _ in range(samples):
            began = time.monotonic()
            url = f"http://127.0.0.1:{here.provider.port}/v1/chat/completions"
            async with session.post(url, data=body) as response:
                await response.content.readany()
                took.append((time.monotonic() - began) * 1000)
                await response.read()
    return took


def _rows(name: str, ours: list[float], bare: list[float], beside: str, aim: float | None = None) -> list[Row]:
    (ours_50, ours_99), (bare_50, bare_99) = spread(ours), spread(bare)
    return [
        Row(name=f"{name}, p50", value=ours_50, unit="ms", bare=bare_50, aim=aim, note=f"bare: {beside}"),
        Row(name=f"{name}, p99", value=ours_99, unit="ms", bare=bare_99),
    ]
