"""Text while it is written: small deltas that fit, whole messages for those who do not ask, the same end for all."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest
import pytest_asyncio
from delta_text import Screen, streamed_parts
from one_server import OneServer

from windlass.testing.server_process import Event, EventTap, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
# An emoji outside the basic plane, one of several code points, combining marks, right to left, and what JSON escapes.
PIECES = ["Hej ", "👍", "🏽", " fam", "👩‍👩‍👧", "e", "\u0301", "n\u0303", " שלום", "\u2028", '"\\\n\n', "\r\n"]
PIECES += ["data: {}", "\U0010ffff"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OneServer]:
    async with OneServer(tmp_path_factory.mktemp("one"), permissions='allow = ["ls"]') as one:
        yield one


def deltas_of(tap: EventTap) -> list[Event]:
    return [event for event in tap.events if event.kind == "message_delta"]


def written_by_model(tap: EventTap) -> Event:
    """The fact that ended the (only) answer."""
    return next(
        event
        for event in reversed(tap.facts)
        if event.kind == "message" and event.body["role"] == "assistant" and event.body["parts"]
    )


async def text_so_far(tap: EventTap, text: str) -> None:
    """Return when the stream has brought this much of the answer."""

    def has_come() -> bool:
        screen = Screen()
        screen.show_all(tap.events)
        return any(("text", text) in streamed_parts(message) for message in screen.messages.values())

    await until(has_come, f"the text so far is {text!r}")


async def test_deltas_put_together_give_the_final_message_in_every_script(one: OneServer) -> None:
    """B43 I16: else people see other words while they stream than afterwards."""
    api = await one.client()
    async with api.stream(deltas=True) as tap:
        accepted = await api.prompt(await api.new_session(), "Speak.")
        call = await one.model.next_call()
        said = ""
        for piece in PIECES:
            await call.say(piece)
            said += piece
            await text_so_far(tap, said)  # so that every piece is a delta of its own
        await call.end()
        await tap.complete(accepted["run_id"])
    offsets = [event.body["at"] for event in deltas_of(tap)]
    assert offsets == [len("".join(PIECES[:index])) for index in range(len(PIECES))]
    final = written_by_model(tap)
    screen = Screen()
    screen.show_all(tap.events[: tap.events.index(final)])
    assert screen.streamed(final.body["id"]) == [("text", "".join(PIECES))] == streamed_parts(final.body)


async def test_reasoning_text_and_a_tools_input_stream_as_parts_of_their_own(one: OneServer) -> None:
    """B43 I16: else thinking is shown as the answer, or a tool call appears out of nowhere."""
    api = await one.client()
    async with api.stream(deltas=True) as tap:
        accepted = await api.prompt(await api.new_session(), "Look.")
        call = await one.model.next_call()
        await call.think("I had better look.")
        await call.say("Let me see.")
        await call.tool("ls", {"path": "."}, id="call_1")
        await call.end()
        call = await one.model.next_call()
        await call.say("Nothing here.")
        await call.end()
        await tap.complete(accepted["run_id"])
    first: dict[int, Event] = {}
    answer = deltas_of(tap)[0].body["message_id"]
    for event in deltas_of(tap):
        if event.body["message_id"] == answer:
            first.setdefault(event.body["part"], event)
    assert [(e.body["type"], e.body["field"], e.body["at"]) for e in first.values()] == [
        ("reasoning", "thinking", 0),
        ("text", "text", 0),
        ("tool_call", "input", 0),
    ]
    assert (first[2].body["id"], first[2].body["name"]) == ("call_1", "ls")
    final = next(e for e in tap.facts if e.kind == "message" and e.body["id"] == answer and len(e.body["parts"]) > 2)
    screen = Screen()
    screen.show_all(tap.events[: tap.events.index(final)])
    assert screen.streamed(answer) == streamed_parts(final.body)
    assert [kind for kind, _ in screen.streamed(answer)] == ["reasoning", "text", "tool_call"]


async def test_a_client_that_attaches_in_the_middle_gets_the_text_so_far_and_deltas_that_fit(one: OneServer) -> None:
    """B43 I16: else who comes late sees half an answer, or garbled text."""
    api = await one.client()
    late = await one.onlooker(api.workspace_id)
    async with api.stream(deltas=True) as early:
        accepted = await api.prompt(await api.new_session(), "Speak.")
        call = await one.model.next_call()
        await call.say("Began 👩‍👩‍👧 ")
        await text_so_far(early, "Began 👩‍👩‍👧 ")
        async with late.stream(deltas=True) as tap:
            await text_so_far(tap, "Began 👩‍👩‍👧 ")
            assert deltas_of(tap) == []
            await call.say("and went on e\u0301.")
            await call.end()
            await tap.complete(accepted["run_id"])
    final = written_by_model(tap)
    screen = Screen()
    screen.show_all(tap.events[: tap.events.index(final)])
    assert screen.deltas > 0
    assert screen.streamed(final.body["id"]) == [("text", "Began 👩‍👩‍👧 and went on e\u0301.")]


async def test_a_client_that_resumes_in_the_middle_gets_facts_then_the_text_so_far(one: OneServer) -> None:
    """B43 B40: else a reconnect while an answer streams shows it twice, or from the middle."""
    api = await one.client()
    async with api.stream(deltas=True, after="0") as tap:
        accepted = await api.prompt(await api.new_session(), "Speak.")
        call = await one.model.next_call()
        await call.say("One, ")
        await text_so_far(tap, "One, ")
    cursor = tap.facts[0].id  # behind what it had seen
    await call.say("two, ")
    async with api.stream(deltas=True, last_event_id=cursor) as again:
        await text_so_far(again, "One, two, ")
        await call.say("three.")
        await call.end()
        await again.complete(accepted["run_id"])
    assert [event.seq for event in again.facts] == list(range(2, again.facts[-1].seq + 1))
    final = written_by_model(again)
    screen = Screen()
    screen.show_all(again.events[: again.events.index(final)])
    assert screen.streamed(final.body["id"]) == [("text", "One, two, three.")]


async def test_without_deltas_an_unfinished_message_comes_whole_and_without_an_id(one: OneServer) -> None:
    """B43: clients of this API family know no deltas: else they see nothing until the end."""
    api = await one.client()
    async with api.stream() as tap:
        accepted = await api.prompt(await api.new_session(), "Speak.")
        call = await one.model.next_call()
        for said in ("One, ", "One, two, "):
            await call.say(said[-5:])
            await text_so_far(tap, said)
        await call.say("three.")
        await call.end()
        await tap.complete(accepted["run_id"])
    assert deltas_of(tap) == []
    unfinished = [event for event in tap.events if event.kind == "message" and not event.id]
    assert {event.change for event in unfinished} == {"updated"}
    texts = [streamed_parts(event.body)[0][1] for event in unfinished]
    assert {"One, ", "One, two, "} <= set(texts)
    assert all("One, two, three.".startswith(text) for text in texts)
    assert texts == sorted(texts, key=len)


async def test_the_message_that_ends_an_answer_is_complete_in_itself(one: OneServer) -> None:
    """B43: else a client that ignores everything without an id has no text."""
    api = await one.client()
    async with api.stream(deltas=True) as with_deltas, api.stream() as without:
        session = await api.new_session()
        accepted = await api.prompt(session, "Speak.")
        call = await one.model.next_call()
        for word in ("All ", "of ", "it."):
            await call.say(word)
        await call.end()
        await with_deltas.complete(accepted["run_id"])
        await without.complete(accepted["run_id"])
    assert with_deltas.facts == without.facts
    assert streamed_parts(written_by_model(without).body) == [("text", "All of it.")]
    assert (await api.messages(session))[-1] == written_by_model(without).body


async def test_a_flood_of_tokens_reaches_a_client_without_deltas_at_a_bounded_rate(one: OneServer) -> None:
    """B43: 30 flushes a second at most; else a long answer costs its length squared."""
    api = await one.client()
    async with api.stream() as tap:
        accepted = await api.prompt(await api.new_session(), "Speak.")
        call = await one.model.next_call()
        for number in range(2_000):
            await call.say(f"{number} ")
        await call.end()
        run = await api.run_over(accepted["run_id"])
        await tap.complete(accepted["run_id"])
    seconds = _seconds(run["ended_at"]) - _seconds(run["started_at"])
    unfinished = [event for event in tap.events if event.kind == "message" and not event.id]
    assert len(unfinished) <= 30 * (seconds + 1) + 2


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
