"""A workspace's log as a client gets it over the stream."""

from windlass.testing.server_process import Api, Event, EventTap, until


async def reached(tap: EventTap, seq: int) -> None:
    """Return when the stream has brought the fact with this number."""
    await until(lambda: bool(tap.facts) and tap.facts[-1].seq >= seq, f"fact {seq} on the stream")


async def whole_log(api: Api) -> list[Event]:
    """Every fact from the floor to the head, as a new client reads it."""
    async with api.stream(after="0") as tap:
        hello = tap.events[0].body
        if hello["head"] > hello["floor"]:
            await reached(tap, hello["head"])
        return tap.facts


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


def is_dense(events: list[Event], first: int = 1) -> bool:
    """Whether the numbers go up one by one from `first`."""
    return [event.seq for event in events] == list(range(first, first + len(events)))
