"""How much is measured: the sizes of a whole run, and smaller ones for a quick look and for a test."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The numbers of the bench. Seconds are windows in which a load is steady."""

    warm_seconds: float = 1.5
    window_seconds: float = 4.0
    sessions: tuple[int, ...] = (4, 50, 128, 300)
    rate: int = 20  # tokens a second of one session
    clients: tuple[int, ...] = (1, 100, 500, 2000)
    samples: int = 100  # of things that are timed one by one
    starts: int = 5
    probes: int = 200  # health checks, and cancels, while the server has too much to do
    busy_sessions: int = 100  # streams that overload it
    history_bytes: int = 800_000  # of each session that is prompted during the mix
    output_bytes: int = 1_000_000
    tree_files: int = 100_000
    mix_sessions: int = 50
    messages: int = 5_000
    facts: int = 100_000
    runs: int = 500
    long_message: int = 10_000  # tokens
    idle_sessions: int = 1_000
    idle_streams: int = 500
    stalled_streams: int = 1_000
    visitors: int = 1_000
    mails: int = 400
    spawns: int = 15  # of workers
    frames: int = 20_000  # over a link in one go
    trips: int = 400  # over a link, one after the other
    placed_sessions: int = 8  # runs in processes of their own: as many as a server has at once


WHOLE = Plan()
QUICK = Plan(
    warm_seconds=1.0,
    window_seconds=1.5,
    sessions=(4, 50, 300),
    clients=(1, 100, 500),
    samples=30,
    starts=2,
    probes=60,
    tree_files=20_000,
    facts=20_000,
    runs=100,
    long_message=2_000,
    idle_sessions=300,
    stalled_streams=200,
    visitors=200,
    mails=160,
    spawns=3,
    frames=5_000,
    trips=100,
    placed_sessions=4,
)
TINY = Plan(
    warm_seconds=0.2,
    window_seconds=0.3,
    sessions=(2,),
    clients=(2,),
    samples=3,
    starts=1,
    probes=5,
    busy_sessions=5,
    history_bytes=20_000,
    output_bytes=20_000,
    tree_files=100,
    mix_sessions=2,
    messages=20,
    facts=100,
    runs=5,
    long_message=100,
    idle_sessions=5,
    idle_streams=5,
    stalled_streams=5,
    visitors=5,
    mails=16,
    spawns=2,
    frames=200,
    trips=10,
    placed_sessions=2,
)
