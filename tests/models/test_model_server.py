"""The model server for tests: it must be as strict with a test as a provider would be."""

import asyncio

import pytest
from model_requests import calls_of, collect, request, text_of

from windlass.testing.model_call import CallGone
from windlass.testing.model_server import ModelServer
from windlass.wire.model import ModelError


async def test_waiting_for_a_call_that_does_not_come_says_so(server: ModelServer) -> None:
    """Otherwise a wrong test would hang, or end with a bare timeout."""
    with pytest.raises(TimeoutError, match="a request to the model"):
        await server.next_call(wait_seconds=0.05)


async def test_waiting_for_a_client_that_stays_says_so(server: ModelServer, open_model) -> None:
    """Otherwise a cancel that does not reach the provider would hang its test."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    with pytest.raises(TimeoutError, match="drop its request"):
        await call.closed(wait_seconds=0.05)
    await call.end()
    await collecting


async def test_speaking_to_a_client_that_left_is_an_error(server: ModelServer, open_model) -> None:
    """Otherwise a test would believe that its words arrived."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    collecting.cancel()
    await call.closed()
    with pytest.raises(CallGone):
        await call.say("anyone?")


async def test_two_calls_at_once_are_answered_apart(server: ModelServer, open_model) -> None:
    """Otherwise runs in parallel could not be tested."""
    model = open_model(server.url)
    answers = [asyncio.ensure_future(collect(model, request(prompt))) for prompt in ("a", "b")]
    for _ in answers:
        call = await server.next_call()
        await call.say(call.request["messages"][-1]["content"].upper())
        await call.end()
    assert [text_of(await answer) for answer in answers] == ["A", "B"]


async def test_it_can_answer_by_itself(server: ModelServer, open_model) -> None:
    """Otherwise a test that is not about the model would have to play its part."""
    server.auto(lambda body: [{"say": body["model"]}, {"tool": "ls", "input": {}}])
    chunks = await collect(open_model(server.url), request())
    assert (text_of(chunks), calls_of(chunks)) == ("test-model", [("call_0_0", "ls", "{}")])


async def test_an_automatic_error_is_an_http_error(server: ModelServer, open_model) -> None:
    """Otherwise retries could not be tested without a hand on the server."""
    server.auto(lambda _: [{"error": "overloaded", "retryable": True}])
    with pytest.raises(ModelError, match="overloaded") as caught:
        await collect(open_model(server.url), request())
    assert caught.value.retryable


async def test_leaving_drops_what_is_open(open_model) -> None:
    """Otherwise a failed test would leave connections and tasks to the next one (I19)."""
    async with ModelServer() as server:
        collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
        await (await server.next_call()).say("word")
    with pytest.raises(ModelError):
        await collecting
    assert server.open_calls == 0
