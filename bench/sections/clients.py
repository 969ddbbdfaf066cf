"""What it costs to tell many clients the same: one session streams, everyone watches."""

from pathlib import Path

from bench import load
from bench.plan import Plan
from bench.rows import Row
from bench.world import world

_AIM_CLIENTS = 500
_AIM_MS = 50.0
_CLIENT_IDS = 500  # beyond this many streams, a client has several: a workspace takes 1,000 clients


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    rows = []
    for clients in plan.clients:
        async with world(scratch) as here:
            statuses = await here.attach(clients, ids=min(clients, _CLIENT_IDS))
            await here.prompt_all(await here.new_sessions(1), load.paced(plan.rate))
            ours = await load.window(here.crowd, here.cpu, plan)
        bare = await load.bare(plan, sessions=1, clients=clients)
        rows += _rows(clients, plan.rate, statuses, ours, bare)
    return rows


def _rows(clients: int, rate: int, statuses: dict[str, int], ours: load.Steady, bare: load.Steady) -> list[Row]:
    where = f"{clients:,} clients" if clients > 1 else "1 client"
    carried = ours.tokens / (statuses.get("200", 0) * rate * ours.seconds)
    notes = [f"{ours.cpu_share:.0%} of a core"]
    notes += [f"{carried:.0%} of the tokens came in time"] if carried < 0.95 else []
    notes += [f"{count:,} refused with {status}" for status, count in statuses.items() if status != "200"]
    cost = Row(
        name=f"CPU per delivered event, {where}",
        value=ours.us_per_event,
        unit="us",
        bare=bare.us_per_event,
        note=", ".join(notes),
    )
    aim = _AIM_MS if clients == _AIM_CLIENTS else None
    late = Row(name=f"provider to client, {where}, p99", value=ours.p99_ms, unit="ms", bare=bare.p99_ms, aim=aim)
    return [cost, late]
