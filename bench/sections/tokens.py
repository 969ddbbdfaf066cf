"""What one token costs on its way from the provider to one client, and how late it comes."""

from pathlib import Path

from bench import load
from bench.plan import Plan
from bench.rows import Row

_AIM_US = 50.0
_AIM_FROM_SESSIONS = 50  # with fewer, a wake-up is shared by fewer tokens


async def measure(plan: Plan, scratch: Path) -> list[Row]:
    rows = []
    for sessions in plan.sessions:
        ours = await load.ours(scratch, plan, sessions=sessions)
        bare = await load.bare(plan, sessions=sessions)
        rows += _rows(sessions, plan.rate, ours, bare)
    return rows


def _rows(sessions: int, rate: int, ours: load.Steady, bare: load.Steady) -> list[Row]:
    offered = sessions * rate * ours.seconds
    carried = ours.tokens / offered
    note = f"{ours.cpu_share:.0%} of a core" + (f", only {carried:.0%} of the tokens came" if carried < 0.95 else "")
    where = f"{sessions} sessions"
    aim = _AIM_US if sessions >= _AIM_FROM_SESSIONS else None
    return [
        Row(
            name=f"CPU per token, {where}",
            value=ours.us_per_token,
            unit="us",
            bare=bare.us_per_token,
            aim=aim,
            note=note,
        ),
        Row(name=f"provider to client, {where}, p50", value=ours.p50_ms, unit="ms", bare=bare.p50_ms),
        Row(name=f"provider to client, {where}, p99", value=ours.p99_ms, unit="ms", bare=bare.p99_ms),
    ]
