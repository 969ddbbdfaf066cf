"""Coming back: who gives the last number it saw gets everything since, once, in order; or is told that it cannot."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from log_reading import ids, is_dense, reached, whole_log
from one_server import OneServer

from windlass.testing.model_server import ModelServer
from windlass.testing.server_process import Api, Event, ServerProcess, openai_config, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OneServer]:
    async with OneServer(tmp_path_factory.mktemp("one")) as one:
        yield one


async def with_a_run(one: OneServer) -> Api:
    """A client of a workspace in which one run took place."""
    api = await one.client()
    await one.answered(api, await api.new_session(), "Say something.", "Something.")
    return api


async def test_every_fact_has_a_number_and_the_numbers_are_dense(one: OneServer) -> None:
    """B40 I12: else a client cannot know whether it missed anything."""
    api = await with_a_run(one)
    facts = await whole_log(api)
    assert is_dense(facts)
    assert len({event.id.partition(".")[0] for event in facts}) == 1
    assert {"session", "run", "message", "run_complete"} == {event.kind for event in facts}


@pytest.mark.parametrize("way", ["last_event_id", "after", "bare after"])
async def test_from_any_cursor_comes_exactly_the_rest(one: OneServer, way: str) -> None:
    """B40 I13: else coming back costs events, or shows them twice."""
    api = await with_a_run(one)
    facts = await whole_log(api)
    for index, last in enumerate(facts[:-1]):
        cursor = {"last_event_id": last.id} if way == "last_event_id" else {"after": last.id}
        if way == "bare after":
            cursor = {"after": str(last.seq)}
        async with api.stream(**cursor) as tap:
            await reached(tap, facts[-1].seq)
            assert tap.events[0].kind == "hello"
            assert tap.facts == facts[index + 1 :]


async def test_from_the_head_comes_nothing_but_what_is_new(one: OneServer) -> None:
    """B40: else a client that missed nothing is shown something twice."""
    api = await with_a_run(one)
    facts = await whole_log(api)
    async with api.stream(last_event_id=facts[-1].id) as tap:
        await api.new_session("new")
        await tap.wait_for("session")
        assert [event.seq for event in tap.facts] == [facts[-1].seq + 1]


async def test_without_a_cursor_a_stream_starts_now(one: OneServer) -> None:
    """B40: else a client that loaded everything over REST is shown all of it again."""
    api = await with_a_run(one)
    async with api.stream() as tap:
        assert tap.events[0].body["head"] == (await whole_log(api))[-1].seq
        session = await api.new_session("new")
        await tap.wait_for("session")
        assert [event.body["id"] for event in tap.facts] == [session]


async def test_last_event_id_wins_over_after(one: OneServer) -> None:
    """B40: a browser that reconnects sends the old query and the new header: the header is where it stands."""
    api = await with_a_run(one)
    facts = await whole_log(api)
    async with api.stream(after=facts[0].id, last_event_id=facts[-2].id) as tap:
        await reached(tap, facts[-1].seq)
        assert ids(tap.facts) == [facts[-1].id]


async def test_a_client_that_drops_again_and_again_during_a_run_misses_nothing(one: OneServer) -> None:
    """B40 I13: else a train ride through tunnels leaves holes in the conversation."""
    api = await one.client()
    seen: list[Event] = []
    runs = 0
    for _ in range(8):
        async with api.stream(**({"last_event_id": seen[-1].id} if seen else {"after": "0"})) as tap:
            session = await api.new_session(f"session {runs}")
            accepted = await api.prompt(session, "Go.")
            call = await one.model.next_call()
            await call.say("Gone.")
            await tap.wait_for("message", lambda event, s=session: event.body["session_id"] == s)  # type: ignore[misc]
        seen += tap.facts
        await call.end()  # while nobody listens
        await api.run_over(accepted["run_id"])
        runs += 1
    async with api.stream(last_event_id=seen[-1].id) as tap:
        await tap.complete(accepted["run_id"])
        seen += tap.facts
    assert is_dense(seen)
    assert seen == await whole_log(api)
    assert sum(event.kind == "run_complete" for event in seen) == runs


async def test_a_cursor_survives_kill_9_while_a_run_streams(tmp_path: Path) -> None:
    """B40 I12 I13: else a crash makes clients miss facts or see numbers that mean something else now."""
    project = tmp_path / "project"
    project.mkdir()
    seen: list[Event] = []
    async with ModelServer() as model:
        config = openai_config(model.url)
        async with ServerProcess(tmp_path / "server", config=config) as server, Api(server) as api:
            await api.open(project)
            session = await api.new_session()
            for _ in range(2):
                async with api.stream(after=seen[-1].id if seen else "0", deltas=True) as tap:
                    accepted = await api.prompt(session, "Tell me everything.")
                    call = await model.next_call()
                    await call.say("It began ")
                    await tap.wait_for("message_delta", lambda event: "began" in event.body["text"])
                    await server.kill()
                    await tap.ended()
                    seen += tap.facts
                await server.start()
                await api.open(project)
            async with api.stream(after=seen[-1].id) as tap:
                assert (await tap.complete(accepted["run_id"])).body["error"]
                seen += tap.facts
            assert is_dense(seen)
            assert seen == await whole_log(api)
            ends = [event.body["run_id"] for event in seen if event.kind == "run_complete"]
            assert len(ends) == len(set(ends)) == 2


CURSORS = {
    "another log": lambda epoch, head: ("0123456789abcdef", 1),
    "beyond the head": lambda epoch, head: (epoch, head + 1),
    "far beyond the head": lambda epoch, head: (epoch, 10**17),
}


@pytest.mark.parametrize("cursor", CURSORS.values(), ids=CURSORS.keys())
async def test_a_cursor_that_cannot_be_honoured_is_told_reset(one: OneServer, cursor: object) -> None:
    """B41: else a client goes on with a hole it does not know of."""
    api = await with_a_run(one)
    hello = await greeting(api)
    epoch, seq = cursor(hello["epoch"], hello["head"])  # type: ignore[operator]
    async with api.stream(last_event_id=f"{epoch}.{seq}") as tap:
        reset = await tap.wait_for("reset")
        assert [event.kind for event in tap.events] == ["hello", "reset"]
        assert reset.id == ""
        assert (reset.body["epoch"], reset.body["head"]) == (hello["epoch"], hello["head"])
        assert reset.body["reason"]


async def test_after_a_reset_the_stream_goes_on_from_the_head(one: OneServer) -> None:
    """B41: else a client that reloaded over REST misses what happens from then on."""
    api = await with_a_run(one)
    async with api.stream(last_event_id="0123456789abcdef.3") as tap:
        reset = await tap.wait_for("reset")
        session = await api.new_session("after the reset")
        await tap.wait_for("session", lambda event: event.body["id"] == session)
        assert [event.seq for event in tap.facts] == [reset.body["head"] + 1]


async def test_a_cursor_of_another_workspace_is_told_reset_and_nothing_of_it_is_shown(one: OneServer) -> None:
    """B41 A18: else one workspace's reader gets the events of another."""
    theirs = await whole_log(await with_a_run(one))
    api = await one.client()
    async with api.stream(last_event_id=theirs[0].id) as tap:
        await tap.wait_for("reset")
        assert tap.facts == []


async def greeting(api: Api) -> dict[str, object]:
    async with api.stream() as tap:
        await until(lambda: bool(tap.events), "the greeting")
        return tap.events[0].body
