"""A whole agent against a server of each wire: what goes wrong in a stream, and what becomes of the run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agent_recorders import Harness, TinyTool, message
from wire_rules import check_anthropic, check_chat, check_responses

from windlass.models.anthropic import AnthropicModel
from windlass.models.openai import OpenAIModel
from windlass.models.responses import ResponsesModel
from windlass.testing.anthropic_wire import AnthropicServer
from windlass.testing.model_call import ModelCall
from windlass.testing.model_server import ModelServer
from windlass.testing.responses_wire import ResponsesServer
from windlass.wire.execution import RunOutcome
from windlass.wire.model import Model

KEY = "canary-key-of-the-test"
WIRES: dict[str, tuple[Callable[[], ModelServer], Callable[..., Model], Callable[[Any], None]]] = {
    "chat": (ModelServer, OpenAIModel, check_chat),
    "anthropic": (AnthropicServer, AnthropicModel, check_anthropic),
    "responses": (ResponsesServer, ResponsesModel, check_responses),
}


class Wire:
    """A server, and an agent that asks it. Every request it gets is one that the real provider would take (I7)."""

    def __init__(self, server: ModelServer, model: Model, check: Callable[[Any], None]) -> None:
        self.server = server
        self.look = TinyTool("look", lambda arguments: f"seen {arguments.get('at', 'nothing')}", read_only=True)
        self.agent = Harness(model, [self.look])
        self._check = check
        self._run: asyncio.Task[RunOutcome] | None = None

    async def call(self, **fields: Any) -> ModelCall:
        if self._run is None:
            self._run = asyncio.ensure_future(self.agent.run(**fields))
        call = await self.server.next_call()
        self._check(call.request)
        return call

    async def says(self, text: str) -> None:
        call = await self.call()
        await call.say(text)
        await call.end()

    async def outcome(self) -> RunOutcome:
        assert self._run is not None
        return await self._run

    @property
    def results(self) -> list[tuple[str, bool]]:
        return [(result.content, result.is_error) for result in self.agent.events.results()]


@pytest.fixture(params=WIRES)
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    server_type, model_type, check = WIRES[request.param]
    async with server_type() as server:
        model = model_type("test", server.url, KEY)
        wire = Wire(server, model, check)
        yield wire
        if wire._run is not None:
            wire._run.cancel()
            await asyncio.wait({wire._run})
        await model.aclose()


async def test_arguments_in_pieces_are_one_call(wire: Wire) -> None:
    """Otherwise a tool would be called with half of what was meant."""
    call = await wire.call()
    await call.tool_piece(0, "", id="c1", name="look")
    for piece in ('{"at"', ': "the ', 'moon"}'):
        await call.tool_piece(0, piece)
    await call.end()
    await wire.says("Done.")
    assert (await wire.outcome()).status == "completed"
    assert wire.results == [("seen the moon", False)]


async def test_a_tool_that_is_not_there_is_said_not_to_be(wire: Wire) -> None:
    """Otherwise one slip of a model would end the run, or spoil the session for good."""
    call = await wire.call()
    await call.tool("made.up", {}, id="c1")
    await call.end()
    await wire.says("Then not.")
    assert (await wire.outcome()).status == "completed"
    assert wire.results == [("There is no tool 'made.up'. There are: look.", True)]


async def test_arguments_that_are_no_json_are_told_to_the_model(wire: Wire) -> None:
    """Otherwise they would come back with every later request, and be refused each time."""
    call = await wire.call()
    await call.tool_piece(0, '{"at": "the mo', id="c1", name="look")
    await call.end()
    await wire.says("Then not.")
    assert (await wire.outcome()).status == "completed"
    ((told, is_error),) = wire.results
    assert is_error and "not valid JSON" in told


async def test_two_calls_of_one_tool_with_one_id_are_two_calls(wire: Wire) -> None:
    """Otherwise one of them would get the other's result, and the provider refuse the next request."""
    call = await wire.call()
    for index, where in enumerate(("here", "there")):
        await call.tool_piece(index, f'{{"at": "{where}"}}', id=f"c{index}", name="look")
    await call.end()
    call = await wire.call()
    for index, where in enumerate(("up", "down")):  # the same ids again, as servers that count from zero send them
        await call.tool_piece(index, f'{{"at": "{where}"}}', id=f"c{index}", name="look")
    await call.end()
    await wire.says("Done.")
    assert (await wire.outcome()).status == "completed"
    assert [content for content, _ in wire.results] == ["seen here", "seen there", "seen up", "seen down"]


async def test_an_error_in_mid_stream_is_tried_again_from_the_beginning(wire: Wire) -> None:
    """Otherwise people would read the first words twice, or half an answer."""
    call = await wire.call()
    await call.say("Half an ")
    await call.fail(500, {"error": {"type": "server_error", "message": "The server had an error."}})
    await wire.says("A whole answer.")
    assert (await wire.outcome()).status == "completed"
    assert wire.agent.events.texts() == ["A whole answer."]


async def test_a_dropped_connection_is_tried_again(wire: Wire) -> None:
    """Otherwise every hiccup of a network would end a run."""
    call = await wire.call()
    await call.say("Half an ")
    call.drop()
    await wire.says("A whole answer.")
    assert (await wire.outcome()).status == "completed"
    assert wire.agent.events.texts() == ["A whole answer."]


async def test_a_provider_that_asks_for_time_gets_it(wire: Wire) -> None:
    """Otherwise we would knock again at once, and be kept out for longer."""
    call = await wire.call()
    await call.fail(429, {"error": {"message": "Slow down."}}, {"Retry-After": "7"})
    await wire.says("Here I am.")
    assert (await wire.outcome()).status == "completed"
    assert wire.agent.slept == [7.0]


async def test_a_refused_key_ends_the_run_at_once_and_is_not_shown(wire: Wire) -> None:
    """Otherwise people would wait for what cannot be, or read a key in a shared session (A39)."""
    call = await wire.call()
    await call.fail(401, {"error": {"message": f"Incorrect API key: {KEY}"}})
    outcome = await wire.outcome()
    assert outcome.status == "failed" and "refused the API key" in outcome.error
    assert KEY not in str(wire.agent.events.all) and not wire.agent.slept


async def test_an_empty_answer_is_asked_for_once_more(wire: Wire) -> None:
    """Otherwise a run would be called done with nothing said."""
    await (await wire.call()).end()
    await wire.says("Something.")
    assert (await wire.outcome()).status == "completed"


async def test_a_conversation_that_is_too_long_is_summed_up_and_goes_on(wire: Wire) -> None:
    """Otherwise a long session would be at its end (B16)."""
    earlier = [message("user", "one"), message("assistant", "two"), message("user", "three")]
    call = await wire.call(messages=earlier)
    said = "This model's maximum context length is 10 tokens. However, your messages resulted in 20 tokens."
    await call.fail(400, {"error": {"message": said, "type": "invalid_request_error"}})
    await wire.says("In short: two.")
    await wire.says("Done.")
    assert (await wire.outcome()).status == "completed"
    assert wire.agent.events.messages()[-1].text == "Done."
    assert "In short: two." in str(wire.server.requests[-1])


async def test_a_cancel_drops_the_connection(wire: Wire) -> None:
    """Otherwise the provider would go on, and so would the bill (B18)."""
    call = await wire.call()
    await call.say("Once upon ")
    wire.agent.cancel.request()
    assert (await wire.outcome()).status == "canceled"
    await call.closed()
