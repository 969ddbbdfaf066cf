"""Following a workspace: every fact once and in order, whatever happens to the connection (B40, I13)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from fake_windlass import EPOCH, TOKEN, FakeWindlass, refusal

from windlass import errors
from windlass.client import (
    Client,
    EventId,
    ProtocolError,
    ServerUnreachable,
    StreamEvent,
    StreamGap,
    WorkspaceHandle,
)

Events = AsyncGenerator[StreamEvent, None]


async def facts(events: Events, number: int) -> list[int]:
    """The sequence numbers of the next facts."""
    seen: list[int] = []
    async with asyncio.timeout(10):
        while len(seen) < number:
            event = await anext(events)
            if event.id is not None:
                seen.append(event.id.seq)
    return seen


async def until(events: Events, kind: str) -> StreamEvent:
    async with asyncio.timeout(10):
        async for event in events:
            if event.kind == kind:
                return event
    raise AssertionError("the stream ended")


def happen(server: FakeWindlass, number: int) -> None:
    for _ in range(number):
        server.fact("session", "updated", {"id": "ses_1"})


async def test_the_first_event_is_the_hello(workspace: WorkspaceHandle) -> None:
    """Callers prompt after it: only from there on can nothing be missed."""
    async with aclosing(workspace.events()) as events:
        assert (await anext(events)).kind == "hello"


async def test_after_a_drop_the_stream_goes_on_behind_the_last_fact(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B40: else a network blip would lose or repeat what people see."""
    async with aclosing(workspace.events()) as events:
        await until(events, "hello")
        happen(server, 3)
        assert await facts(events, 3) == [1, 2, 3]
        server.drop_streams()
        happen(server, 2)
        assert await facts(events, 2) == [4, 5]
    assert server.stream_headers[-1]["Last-Event-ID"] == f"{EPOCH}.3"


async def test_a_drop_before_the_first_fact_loses_nothing(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """ "From now" means from the first connection: else what happens during the first blip would be lost."""
    happen(server, 2)
    async with aclosing(workspace.events()) as events:
        await until(events, "hello")
        server.drop_streams()
        happen(server, 1)
        assert await facts(events, 1) == [3]


async def test_facts_from_a_place_on_are_replayed(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Else a client that comes back the next day could not catch up."""
    happen(server, 5)
    async with aclosing(workspace.events(after=EventId(EPOCH, 3))) as events:
        assert await facts(events, 2) == [4, 5]


async def test_everything_is_replayed_after_zero(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """A bare 0 is the floor of the log."""
    happen(server, 3)
    async with aclosing(workspace.events(after=0)) as events:
        assert await facts(events, 3) == [1, 2, 3]


async def test_a_fact_sent_twice_is_handed_over_once(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """I13: a server that replays too much must not make a client do things twice."""
    happen(server, 4)
    async with aclosing(workspace.events(after=EventId(EPOCH, 2))) as events:
        assert await facts(events, 2) == [3, 4]
        server.drop_streams()
        await until(events, "hello")
        stream = next(iter(server._streams))
        stream._sent = 1  # this server has a bad memory
        happen(server, 1)
        assert await facts(events, 1) == [5]
    assert len(server.stream_headers) == 2  # the repeats were no reason to connect once more


async def test_a_restarted_server_is_found_again_and_the_workspace_opened() -> None:
    """B40 B31: else an attached client would be stranded by every update of the server."""
    server = FakeWindlass()
    async with server.serve():
        client = Client(server.url, TOKEN)
        workspace = await client.open("/somewhere")
        events = workspace.events()
        await until(events, "hello")
        happen(server, 1)
        assert await facts(events, 1) == [1]
    server.is_open = False
    happen(server, 1)
    waiting = asyncio.create_task(facts(events, 1))
    async with server.serve():
        assert await waiting == [2]
        await events.aclose()
        await client.close()
    assert server.creates == 2


async def test_a_reset_is_handed_over_and_the_stream_goes_on_from_its_head(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """B41: a client must learn that facts are gone, and then not be told again."""
    happen(server, 3)
    async with aclosing(workspace.events(after=EventId("another", 7))) as events:
        assert (await until(events, "reset")).payload["head"] == 3
        happen(server, 1)
        assert await facts(events, 1) == [4]


async def test_a_hole_that_stays_is_raised(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """I13: a picture with a silent hole in it is worse than an error."""
    happen(server, 4)
    server.skip = {3}
    async with aclosing(workspace.events(after=EventId(EPOCH, 1))) as events:
        assert await facts(events, 1) == [2]
        with pytest.raises(StreamGap, match=r"\.2 to .*\.4"):
            await facts(events, 1)


async def test_a_hole_that_a_new_connection_does_not_have_is_healed(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """A proxy's hiccup is no reason to give up."""
    happen(server, 4)
    server.skip = {3}
    notices: list[str] = []

    def heal(notice: str) -> None:
        notices.append(notice)
        server.skip = set()

    async with aclosing(workspace.events(after=EventId(EPOCH, 1), notice=heal)) as events:
        assert await facts(events, 3) == [2, 3, 4]
    assert "facts are missing" in notices[0]


async def test_a_silent_connection_is_replaced(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """B44: a link that died without a word would otherwise look like a quiet workspace for ever."""
    async with aclosing(workspace.events(silence=0.2)) as events:
        await until(events, "hello")
        server.silent = True
        happen(server, 1)
        await until(events, "hello")
        server.silent = False
        assert await facts(events, 1) == [1]


async def test_a_slow_reader_is_not_taken_for_a_silent_server(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Only waiting counts as silence: else a client busy for a moment would reconnect for nothing."""
    async with aclosing(workspace.events(silence=0.2)) as events:
        await until(events, "hello")
        happen(server, 1)
        await asyncio.sleep(0.5)  # the reader is busy: this is the load itself, not a wait for something
        assert await facts(events, 1) == [1]
    assert len(server.stream_headers) == 1


async def test_giving_up_is_bounded_when_asked_for(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Else a script would hang on a server that is gone."""
    async with aclosing(workspace.events(give_up_after=0.3)) as events:
        await until(events, "hello")
        server.greets = False
        server.silent = True
        for _ in range(50):
            server.refuse("/events", refusal(503, "Leaving."))
        server.drop_streams()
        with pytest.raises(ServerUnreachable, match="Leaving"):
            await until(events, "never")


async def test_a_refusal_for_good_is_raised_and_not_tried_again(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """A retired client (409) would otherwise knock for ever."""
    server.refuse("/events", refusal(409, "This client said goodbye."))
    async with aclosing(workspace.events()) as events:
        with pytest.raises(errors.Conflict, match="goodbye"):
            await anext(events)


async def test_people_are_told_of_a_lost_connection_and_of_its_return(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Else a person would wait for an answer that cannot come."""
    notices: list[str] = []
    async with aclosing(workspace.events(notice=notices.append)) as events:
        await until(events, "hello")
        server.drop_streams()
        await until(events, "hello")
    assert [notice.split(":")[0] for notice in notices] == ["The connection was lost", "Connected again."]


async def test_kinds_and_fields_of_a_later_version_come_through(
    server: FakeWindlass, workspace: WorkspaceHandle
) -> None:
    """Shapes only grow: an old client must live with a new server."""
    async with aclosing(workspace.events()) as events:
        await until(events, "hello")
        server.fact("hologram", "created", {"depth": 3})
        event = await until(events, "hologram")
    assert (event.payload, event.envelope()["id"]) == ({"depth": 3}, f"{EPOCH}.1")


async def test_a_fact_without_a_body_is_an_empty_one(server: FakeWindlass, workspace: WorkspaceHandle) -> None:
    """Deleting a session empties its facts; they keep their number and must not end the stream."""
    async with aclosing(workspace.events()) as events:
        await until(events, "hello")
        server.fact("message", "updated", None)  # type: ignore[arg-type]
        assert (await until(events, "message")).payload == {}


@pytest.mark.parametrize("wrong", ["", "17", ".5", "e.", "e.-1", "e.x", "e.²"])
def test_a_malformed_event_id_is_refused(wrong: str) -> None:
    """Else a wrong cursor would be sent back to the server as if it meant something."""
    with pytest.raises(ProtocolError, match="no event id"):
        EventId.parse(wrong)
