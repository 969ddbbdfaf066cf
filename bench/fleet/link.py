"""How fast the link to a worker is: a round trip, and frames a second, beside the bare WebSocket library."""

import msgspec

from bench.child import Child
from bench.fleet import bare_client
from bench.fleet.executor import MESSAGE_ID, WORD
from bench.fleet.owner import ENVIRONMENT, Owner, guarded
from bench.plan import Plan
from bench.rows import Row, percentile, spread
from windlass.fleet.parent.link import RemoteExecutor
from windlass.fleet.pool.spawn import spawn_worker
from windlass.ids import new_id
from windlass.wire.frames import AckFrame, EventFrame
from windlass.wire.run_events import Delta
from windlass.wire.worker import WorkerSpec

_CHATTER = WorkerSpec(secret="", executor="bench.fleet.executor:Chatter")
_ROUNDS = 5  # ours and bare in turn: a machine that does something else does it to both
_AROUND = 2  # the start and the end of the message


async def measure(plan: Plan) -> list[Row]:
    rates: list[float] = []
    bare_rates: list[float] = []
    trips: list[float] = []
    bare_trips: list[float] = []
    async with Child("bench.fleet.bare_socket") as bare, guarded() as guardian:
        worker = await spawn_worker(guardian, _CHATTER, ENVIRONMENT)
        executor = RemoteExecutor(worker.url, worker.secret)
        try:
            for _ in range(_ROUNDS):
                bare_rates.append(await bare_client.flood(bare.port, event_frame(durable=False), plan.frames))
                rates.append(await _flood(executor, plan.frames))
                bare_trips += await bare_client.trips(bare.port, event_frame(durable=True), _ack(), plan.trips)
                trips += await _trips(executor, plan.trips)
        finally:
            await worker.close()
    return _rows(rates, bare_rates, trips, bare_trips)


async def _flood(executor: RemoteExecutor, frames: int) -> float:
    """Frames a second, from the first that came to the last."""
    owner = Owner(f"flood {frames}")
    await owner.run(executor)
    if owner.events != frames + _AROUND:
        raise RuntimeError(f"{owner.events} frames came instead of {frames + _AROUND}: they were merged")
    return (owner.events - 1) / (owner.last_at - owner.first_at)


async def _trips(executor: RemoteExecutor, trips: int) -> list[float]:
    return msgspec.convert((await Owner(f"trips {trips}").run(executor)).transcript, list[float])


def event_frame(*, durable: bool) -> str:
    """What the link carries for one word."""
    word = Delta(MESSAGE_ID, 0, "text", WORD)
    frame = EventFrame(run_id=new_id("run"), attempt=1, event=word, seq=10_000, durable=durable)
    return msgspec.json.encode(frame).decode()


def _ack() -> str:
    return msgspec.json.encode(AckFrame(run_id=new_id("run"), attempt=1, seq=10_000)).decode()


def _rows(rates: list[float], bare_rates: list[float], trips: list[float], bare_trips: list[float]) -> list[Row]:
    (trip_50, trip_99), (bare_50, bare_99) = spread(trips), spread(bare_trips)
    library = "bare: the WebSocket library with the same bytes"
    name = "round trip of a link, an event and its ack"
    return [
        Row(name=f"{name}, p50", value=trip_50, unit="ms", bare=bare_50, note=library),
        Row(name=f"{name}, p99", value=trip_99, unit="ms", bare=bare_99),
        Row(
            name="frames from a worker over a link",
            value=percentile(sorted(rates), 0.5),
            unit="/s",
            bare=percentile(sorted(bare_rates), 0.5),
            note=library,
        ),
    ]
