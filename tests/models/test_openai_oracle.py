"""OpenAI's own SDK as the oracle: what is on the wire means to us what it means to them, in both protocols.

The fake server gives the same answer twice, to the SDK and to our adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from model_requests import request
from openai_oracle import Chat, Responses, Said, everything, open_wire, ours

from windlass.testing.model_call import ModelCall
from windlass.testing.responses_wire import ResponsesCall
from windlass.wire.model import Chunk, ModelError

if TYPE_CHECKING:
    import openai

Play = Callable[[Any], Awaitable[None]]


@pytest.fixture(params=[Chat, Responses])
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Chat | Responses]:
    async with open_wire(request.param) as wire:
        yield wire


async def both(wire: Chat | Responses, play: Play) -> tuple[Said, Said]:
    """The same answer as the SDK and as we understand it."""
    theirs = asyncio.ensure_future(wire.theirs())
    await play(await wire.server.next_call())
    chunks: list[Chunk] = []
    mine = asyncio.ensure_future(wire.model.stream(request(), chunks.append))
    await play(await wire.server.next_call())
    await mine
    return await theirs, ours(chunks)


# -- answers ----------------------------------------------------------------------------------------------------------


async def words(call: ModelCall) -> None:
    for word in ("Grüße", " ", "an ", "alle ", "😀", "\n\n"):
        await call.say(word)
    await call.end()


async def calls_in_turn(call: ModelCall) -> None:
    await call.tool_piece(0, '{"x"', id="a", name="ls")
    await call.tool_piece(1, '{"y"', id="b", name="view")
    await call.tool_piece(0, ":1}")
    await call.tool_piece(1, ":2}")
    await call.end()


async def broken_arguments(call: ModelCall) -> None:
    await call.tool_piece(0, "{not json", id="a", name="no.such tool")
    await call.end()


async def nothing(call: ModelCall) -> None:
    await call.end()


async def too_long(call: ModelCall) -> None:
    await call.say("Half")
    await call.end("max_output_tokens" if isinstance(call, ResponsesCall) else "length")


async def filtered(call: ModelCall) -> None:
    await call.say("Half")
    await call.end("content_filter")


@pytest.mark.parametrize(
    "play", [words, everything, calls_in_turn, broken_arguments, nothing, too_long, filtered], ids=lambda f: f.__name__
)
async def test_an_answer_means_to_us_what_it_means_to_the_sdk(wire: Chat | Responses, play: Play) -> None:
    """Otherwise our own reading of the protocol would be wrong, and no test of ours could tell."""
    theirs, mine = await both(wire, play)
    assert mine == theirs


# -- errors -----------------------------------------------------------------------------------------------------------


def kind_of(error: openai.APIStatusError) -> str:
    """What the SDK calls it, in our words."""
    import openai

    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "auth"
        case openai.RateLimitError():
            return "limit"
        case openai.BadRequestError() | openai.NotFoundError() | openai.UnprocessableEntityError():
            return "refused"
        case _:
            return "broken"


async def both_fail(wire: Chat | Responses, play: Play) -> tuple[Exception, ModelError]:
    errors: list[Exception] = []
    for asking in (wire.theirs(), wire.model.stream(request(), lambda chunk: None)):
        task = asyncio.ensure_future(asking)
        await play(await wire.server.next_call())
        try:
            await task
        except Exception as error:  # whatever it is, it is what is compared
            errors.append(error)
    theirs, mine = errors
    assert isinstance(mine, ModelError)
    return theirs, mine


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 529])
async def test_a_refusal_is_of_the_same_kind_and_tried_again_alike(wire: Chat | Responses, status: int) -> None:
    """Otherwise we would give up where the provider's own client goes on, or knock where it does not."""
    import openai

    async def refuse(call: ModelCall) -> None:
        await call.fail(status, {"error": {"message": "No.", "type": "some_error", "code": None}})

    theirs, mine = await both_fail(wire, refuse)
    assert isinstance(theirs, openai.APIStatusError) and mine.kind == kind_of(theirs)
    assert mine.retryable is wire.sdk._should_retry(theirs.response)


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "7"}, {"Retry-After-Ms": "1500"}, {"Retry-After": "2", "Retry-After-Ms": "1500"}, {}]
)
async def test_the_time_to_wait_is_the_same(wire: Chat | Responses, headers: dict[str, str]) -> None:
    """Otherwise we would knock again too early and be refused for longer."""
    import openai

    async def refuse(call: ModelCall) -> None:
        await call.fail(429, {"error": {"message": "Slower."}}, headers)

    theirs, mine = await both_fail(wire, refuse)
    assert isinstance(theirs, openai.RateLimitError)
    assert mine.retry_after == wire.sdk._parse_retry_after_header(theirs.response.headers)


async def test_an_error_in_mid_stream_is_one_to_both(wire: Chat | Responses) -> None:
    """Otherwise half an answer would pass for a whole one."""
    import openai

    async def fail(call: ModelCall) -> None:
        await call.say("Half")
        await call.fail(body={"error": {"code": "server_error", "message": "Out of breath."}})

    theirs, mine = await both_fail(wire, fail)
    assert isinstance(theirs, openai.APIError) and "Out of breath." in theirs.message
    assert "Out of breath." in mine.message and mine.retryable


async def test_a_dropped_connection_is_an_error_to_both(wire: Chat | Responses) -> None:
    """Otherwise half an answer would pass for a whole one."""
    import openai

    async def drop(call: ModelCall) -> None:
        await call.say("Half")
        call.drop()

    theirs, mine = await both_fail(wire, drop)
    assert isinstance(theirs, openai.APIConnectionError) and (mine.kind, mine.retryable) == ("broken", True)
