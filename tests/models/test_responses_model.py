"""The Responses adapter against a real HTTP server that speaks the protocol as it should be spoken."""

import asyncio

import pytest
from model_requests import calls_of, collect, reasoning_of, request, text_of, tool_spec

from windlass import limits
from windlass.models.providers import build_model
from windlass.models.responses import ResponsesModel
from windlass.models.responses_thoughts import signature_of
from windlass.testing.responses_wire import ResponsesCall, ResponsesServer
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, TextChunk, UsageChunk
from windlass.wire.runs import Usage


class Conversation:
    """One request that is under way: the hand that answers it, and what comes of it."""

    def __init__(self, server: ResponsesServer, adapter: ResponsesModel, **fields) -> None:
        self._server = server
        self._collecting = asyncio.ensure_future(collect(adapter, request(**fields)))

    async def call(self) -> ResponsesCall:
        call = await self._server.next_call()
        assert isinstance(call, ResponsesCall)
        return call

    async def chunks(self) -> list[Chunk]:
        return await self._collecting

    async def error(self) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self._collecting
        return caught.value


@pytest.fixture
def ask(responses_server: ResponsesServer, open_responses):
    def ask(key: str = "key-of-the-test", **fields) -> Conversation:
        return Conversation(responses_server, open_responses(responses_server.url, key), **fields)

    return ask


def test_the_config_can_ask_for_it() -> None:
    """Otherwise nobody could use it."""
    assert isinstance(build_model("x", "openai-responses", base_url="http://127.0.0.1:1/v1"), ResponsesModel)


async def test_an_answer_streams_word_by_word(responses_server: ResponsesServer, open_responses) -> None:
    """Otherwise people would stare at nothing until the whole answer is there."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_responses(responses_server.url).stream(request(), chunks.put_nowait))
    call = await responses_server.next_call()
    await call.say("Hello ")
    assert await chunks.get() == TextChunk("Hello ")
    await call.say("there.")
    assert await chunks.get() == TextChunk("there.")
    await call.end()
    await streaming
    assert chunks.get_nowait() == FinishChunk("end_turn")


async def test_thoughts_words_and_calls_come_apart_each_in_its_block(ask) -> None:
    """Otherwise thoughts would be shown as the answer, or a tool called with half of its arguments."""
    asked = ask()
    call = await asked.call()
    await call.think("hm")
    await call.say("Looking.")
    await call.tool("ls", {"path": "a/b"}, id="c1")
    await call.tool("view", {"path": "c"}, id="c2")
    await call.end()
    chunks = await asked.chunks()
    assert (reasoning_of(chunks), text_of(chunks)) == ("hm", "Looking.")
    assert calls_of(chunks) == [("c1", "ls", '{"path":"a/b"}'), ("c2", "view", '{"path":"c"}')]
    assert [chunk.block for chunk in chunks if isinstance(chunk, TextChunk | ReasoningChunk)] == [0, 0, 1]
    assert chunks[-1] == FinishChunk("tool_use")


async def test_pieces_of_two_calls_in_turn_find_their_own(ask) -> None:
    """Otherwise a call would get another's arguments."""
    asked = ask()
    call = await asked.call()
    await call.tool_piece(0, '{"x"', id="a", name="ls")
    await call.tool_piece(1, '{"y"', id="b", name="view")
    await call.tool_piece(0, ":1}")
    await call.tool_piece(1, ":2}")
    await call.end()
    assert calls_of(await asked.chunks()) == [("a", "ls", '{"x":1}'), ("b", "view", '{"y":2}')]


async def test_parts_of_a_summary_are_set_apart(ask) -> None:
    """Otherwise the last word of one thought would run into the headline of the next."""
    asked = ask()
    call = await asked.call()
    for part, text in ((0, "**One**"), (0, " a"), (1, "**Two**"), (1, " b")):
        await call.think(text, part)
    await call.end()
    assert reasoning_of(await asked.chunks()) == "**One** a\n\n**Two** b"


async def test_complete_thoughts_get_the_signature_that_is_wanted_back(ask) -> None:
    """Otherwise the model would forget its thoughts at every step."""
    asked = ask()
    call = await asked.call()
    await call.think("")
    await call.say("x")
    await call.end()
    signature = signature_of("reasoning_0", "encrypted-0", is_plain=False)
    assert (await asked.chunks())[0] == ReasoningChunk("", signature, 0)


async def test_thoughts_that_are_not_encrypted_are_kept_as_text(ask) -> None:
    """Otherwise open models behind this protocol would forget their thoughts at every step."""
    asked = ask()
    call = await asked.call()
    await call.think_aloud("alo")
    await call.think_aloud("ud")
    await call.say("x")
    await call.end()
    chunks = await asked.chunks()
    assert reasoning_of(chunks) == "aloud"
    assert chunks[2] == ReasoningChunk("", signature_of("reasoning_0", "", is_plain=True), 0)


async def test_a_refusal_is_said(ask) -> None:
    """Otherwise people would see an empty answer and not know why."""
    asked = ask()
    call = await asked.call()
    await call.refuse("I will not.")
    await call.end()
    assert text_of(await asked.chunks()) == "I will not."


async def test_usage_is_reported_once_with_cached_tokens(ask) -> None:
    """Otherwise people would pay for tokens that nobody counted."""
    asked = ask()
    call = await asked.call()
    details = {"cached_tokens": 8, "cache_write_tokens": 1}
    await call.end(usage={"input_tokens": 10, "output_tokens": 3, "input_tokens_details": details})
    usages = [chunk for chunk in await asked.chunks() if isinstance(chunk, UsageChunk)]
    assert usages == [UsageChunk(Usage(10, 3, 8, 1))]


@pytest.mark.parametrize(
    ("said", "ours"),
    [("", "end_turn"), ("max_output_tokens", "max_tokens"), ("content_filter", "content_filter"), ("new", "unknown")],
)
async def test_reasons_of_an_end_are_ours(ask, said: str, ours: str) -> None:
    """Otherwise a cut-off answer would look like a finished one."""
    asked = ask()
    call = await asked.call()
    await call.say("x")
    await call.end(said)
    assert (await asked.chunks())[-1] == FinishChunk(ours)


async def test_an_empty_answer_is_an_answer(ask) -> None:
    """Otherwise the agent could not say that the model said nothing."""
    asked = ask()
    await (await asked.call()).end()
    assert await asked.chunks() == [FinishChunk("end_turn")]


async def test_a_made_up_tool_and_broken_arguments_pass_through(ask) -> None:
    """Otherwise the model would not be told what is wrong with its call."""
    asked = ask(tools=[tool_spec("ls")])
    call = await asked.call()
    await call.tool_piece(0, "{not json", id="a", name="no.such tool")
    await call.end()
    assert calls_of(await asked.chunks()) == [("a", "no.such tool", "{not json")]


async def test_ten_megabytes_of_arguments_are_refused(ask) -> None:
    """Otherwise one model that does not stop could take all of the server's memory (A32)."""
    asked = ask()
    call = await asked.call()
    await call.tool_piece(0, "", id="a", name="write")
    await call.tool_piece(0, "x" * 10_000_000)
    assert f"more than {limits.TOOL_ARGUMENTS_BYTES} bytes" in (await asked.error()).message


async def test_more_calls_than_the_limit_are_refused(ask) -> None:
    """Otherwise a malfunctioning model could start thousands of tools (A32)."""
    asked = ask()
    call = await asked.call()
    for number in range(limits.TOOL_CALLS_PER_STEP + 1):
        await call.tool_piece(number, "{}", id=f"c{number}", name="ls")
    assert "tool calls at once" in (await asked.error()).message


async def test_the_request_has_the_key_and_goes_to_responses(ask) -> None:
    """Otherwise a provider would refuse us."""
    asked = ask("secret-key")
    call = await asked.call()
    await call.end()
    await asked.chunks()
    assert call.headers["Authorization"] == "Bearer secret-key"
    assert call.request["input"][0]["content"] == [{"type": "input_text", "text": "hello"}]


async def test_cancelling_in_the_middle_drops_the_connection_at_once(
    responses_server: ResponsesServer, open_responses
) -> None:
    """Otherwise a cancelled run would go on generating at the provider, and cost (B18)."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_responses(responses_server.url).stream(request(), chunks.put_nowait))
    call = await responses_server.next_call()
    await call.say("word")
    await chunks.get()
    streaming.cancel()
    await call.closed()
    with pytest.raises(asyncio.CancelledError):
        await streaming


async def test_the_next_step_uses_the_same_connection(responses_server: ResponsesServer, open_responses) -> None:
    """Otherwise every step of a run would pay for a new TLS handshake."""
    model, peers = open_responses(responses_server.url), set()
    for _ in range(3):
        asked = Conversation(responses_server, model)
        call = await asked.call()
        peers.add(call.peer)
        await call.end()
        await asked.chunks()
    assert len(peers) == 1


async def test_the_last_event_ends_it_though_the_body_goes_on(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a run would hang at the end of every answer of a server that keeps its body open."""
    monkeypatch.setattr(limits, "MODEL_TRAILER_SECONDS", 0.01)
    asked = ask()
    call = await asked.call()
    await call.event({"type": "response.completed", "response": {"status": "completed", "output": []}})
    async with asyncio.timeout(5):
        assert await asked.chunks() == [FinishChunk("end_turn")]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_in_no_message(ask, status: int) -> None:
    """Otherwise a key would end up in a conversation (A39)."""
    asked = ask("sk-canary-123456")
    said = {"error": {"message": "Incorrect API key provided: sk-canary-123456.", "code": "invalid_api_key"}}
    await (await asked.call()).fail(status, said)
    error = await asked.error()
    assert (error.kind, error.retryable) == ("auth", False)
    assert "providers.local" in error.message and "canary" not in error.message


def test_the_key_is_not_in_the_repr(open_responses) -> None:
    """Otherwise a log line with the model in it would hold the key (A39)."""
    assert repr(open_responses("http://127.0.0.1:1/v1", "canary")) == "ResponsesModel('local', 'http://127.0.0.1:1/v1')"


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"Retry-After": "7"}, "slow", 7.0),
        ({"Retry-After": "7", "Retry-After-Ms": "6500"}, "slow", 6.5),
        ({}, "Rate limit reached. Please try again in 11.054s.", 11.054),
        ({}, "Rate limit reached. Please try again in 28ms.", 0.028),
        ({}, "slow", None),
    ],
)
async def test_too_many_requests_says_how_long_to_wait(ask, headers, message: str, seconds: float | None) -> None:
    """Otherwise we would knock again too early and be refused for longer."""
    asked = ask()
    await (await asked.call()).fail(429, {"error": {"message": message}}, headers)
    error = await asked.error()
    assert (error.kind, error.retryable, error.retry_after) == ("limit", True, seconds)


@pytest.mark.parametrize("begun", [False, True])
async def test_a_conversation_that_is_too_long_is_called_that(ask, begun: bool) -> None:
    """Otherwise it would not be summed up, and the session would be stuck."""
    asked = ask()
    call = await asked.call()
    if begun:
        await call.think("hm")
    said = "Your input exceeds the context window of this model. Please adjust your input and try again."
    await call.fail(400, {"error": {"code": "context_length_exceeded", "message": said}})
    error = await asked.error()
    assert (error.kind, error.retryable) == ("overflow", False)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "broken", True),
        ("server_is_overloaded", "broken", True),
        ("rate_limit_exceeded", "limit", True),
        ("insufficient_quota", "limit", False),
        ("invalid_prompt", "refused", False),
        ("image_parse_error", "refused", False),
        ("something_new", "broken", True),
    ],
)
async def test_an_answer_that_fails_half_way_is_judged_by_its_code(ask, code: str, kind: str, retryable: bool) -> None:
    """Otherwise a wrong request would be sent five times, or a hiccup would end a long run."""
    asked = ask()
    call = await asked.call()
    await call.say("Half")
    await call.fail(body={"error": {"code": code, "message": "It is what it is."}})
    error = await asked.error()
    assert (error.kind, error.retryable) == (kind, retryable)
    assert "It is what it is." in error.message


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "Oh no.", "param": None},
        {"type": "error", "error": {"type": "server_error", "code": None, "message": "Oh no."}},
        {"error": {"type": "server_error", "message": "Oh no."}},
    ],
)
async def test_an_error_event_ends_the_answer_in_each_of_its_shapes(ask, event: dict) -> None:
    """Otherwise half an answer would pass for a whole one."""
    asked = ask()
    call = await asked.call()
    await call.say("Half")
    await call.event(event)
    error = await asked.error()
    assert "Oh no." in error.message and error.retryable


async def test_a_dropped_connection_may_be_tried_again(ask) -> None:
    """Otherwise one lost packet would end a run of an hour."""
    asked = ask()
    call = await asked.call()
    await call.say("Half")
    call.drop()
    assert (await asked.error()).retryable


async def test_an_answer_that_just_stops_is_not_taken_for_a_whole_one(ask) -> None:
    """Otherwise a provider's crash would look like a short answer, and its calls would be run."""
    asked = ask()
    call = await asked.call()
    await call.tool("bash", {"command": "rm x"})
    await call.end_body()
    error = await asked.error()
    assert "in the middle" in error.message and error.retryable


async def test_who_may_not_read_thoughts_still_gets_an_answer(
    responses_server: ResponsesServer, open_responses
) -> None:
    """Otherwise an organisation that is not verified could not use these models at all."""
    model = open_responses(responses_server.url)
    asked = Conversation(responses_server, model, model="gpt-5")
    said = "Your organization must be verified to generate reasoning summaries."
    await (await asked.call()).fail(400, {"error": {"message": said, "param": "reasoning.summary"}})
    again = await asked.call()
    await again.say("Yes.")
    await again.end()
    assert text_of(await asked.chunks()) == "Yes." and "reasoning" not in again.request
    later = Conversation(responses_server, model, model="gpt-5")
    call = await later.call()
    await call.end()
    await later.chunks()
    assert "reasoning" not in call.request  # it is not asked in vain again
