"""The adapter against a real HTTP server that speaks the Messages protocol."""

import asyncio

import msgspec
import pytest
from anthropic_recordings import EVERYTHING
from model_requests import calls_of, collect, message, reasoning_of, request, text_of

from windlass import limits
from windlass.models.providers import build_model
from windlass.testing.anthropic_wire import AnthropicServer
from windlass.wire.messages import Reasoning, ReasoningData
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, TextChunk, UsageChunk
from windlass.wire.runs import Usage


async def test_an_answer_streams_word_by_word(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise people would stare at nothing until the whole answer is there."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_anthropic(anthropic_server.url).stream(request(), chunks.put_nowait))
    call = await anthropic_server.next_call()
    await call.think("Hm.")
    assert await chunks.get() == ReasoningChunk("Hm.")
    await call.sign("c2ln")
    assert await chunks.get() == ReasoningChunk("", "c2ln")
    await call.say("Hello.")
    assert await chunks.get() == TextChunk("Hello.", block=1)
    await call.end()
    await streaming


async def test_a_script_is_answered_in_this_wire_too(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise tests of agents could be written for one provider only."""
    steps = [{"think": "hm"}, {"say": "Looking."}, {"tool": "ls", "input": {"path": "a"}, "id": "c1"}]
    anthropic_server.auto(lambda _: steps)
    chunks = await collect(open_anthropic(anthropic_server.url), request())
    assert (reasoning_of(chunks), text_of(chunks)) == ("hm", "Looking.")
    assert calls_of(chunks) == [("c1", "ls", '{"path":"a"}')]
    assert chunks[-1] == FinishChunk("tool_use")


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_the_address_may_end_with_the_version_or_not(
    anthropic_server: AnthropicServer, open_anthropic, ending: str
) -> None:
    """Otherwise half of those who copy the address from a manual would get a bare 404."""
    anthropic_server.auto(lambda _: [{"say": "here"}])
    base = anthropic_server.url.removesuffix("/v1")
    assert text_of(await collect(open_anthropic(base + ending), request())) == "here"


async def test_the_key_and_the_version_are_in_their_headers(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise the provider would refuse everything."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url, "canary-1"), request()))
    call = await anthropic_server.next_call()
    await call.end()
    await collecting
    assert call.headers["x-api-key"] == "canary-1"
    assert call.headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in call.headers


async def test_without_a_key_none_is_sent(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise local servers that take any client would be sent an empty header, which some refuse."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url, ""), request()))
    call = await anthropic_server.next_call()
    await call.end()
    await collecting
    assert "x-api-key" not in call.headers


async def test_in_packets_of_one_byte_it_is_the_same_answer(
    anthropic_server: AnthropicServer, open_anthropic, raw_server
) -> None:
    """Otherwise what a model says would depend on the network."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for at in range(len(EVERYTHING)):
            writer.write(EVERYTHING[at : at + 1])
            if at % 16 == 0:
                await writer.drain()
                await asyncio.sleep(0)  # a packet of its own, as far as the kernel goes along

    slowly = await collect(open_anthropic(await raw_server(answer)), request())
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), request()))
    call = await anthropic_server.next_call()
    await call.raw(EVERYTHING)
    await call.end_body()
    assert await collecting == slowly


async def test_the_last_event_ends_it_and_keeps_the_connection(
    anthropic_server: AnthropicServer, open_anthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every step of a run would pay for a new TLS handshake."""
    monkeypatch.setattr(limits, "MODEL_TRAILER_SECONDS", 5.0)
    peers = set()
    model = open_anthropic(anthropic_server.url)
    for _ in range(3):
        collecting = asyncio.ensure_future(collect(model, request()))
        call = await anthropic_server.next_call()
        peers.add(call.peer)
        await call.say("x")
        await call.end()
        await collecting
    assert len(peers) == 1


async def test_a_server_that_keeps_the_connection_open_does_not_hold_the_run(raw_server, open_anthropic) -> None:
    """Otherwise a run would hang at the end of every answer of such a server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + EVERYTHING)
        await reader.read()  # until the client closes

    async with asyncio.timeout(5):
        assert (await collect(open_anthropic(await raw_server(answer)), request()))[-1] == FinishChunk("tool_use")


async def test_cancelling_in_the_middle_drops_the_connection_at_once(
    anthropic_server: AnthropicServer, open_anthropic
) -> None:
    """Otherwise a cancelled run would go on generating at the provider, and cost (B18)."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_anthropic(anthropic_server.url).stream(request(), chunks.put_nowait))
    call = await anthropic_server.next_call()
    await call.say("word")
    await chunks.get()
    streaming.cancel()
    await call.closed()
    with pytest.raises(asyncio.CancelledError):
        await streaming


# -- when it goes wrong -----------------------------------------------------------------------------------------------


async def refused(server: AnthropicServer, model, status: int, said: str = "No.", headers=None, **error) -> ModelError:
    collecting = asyncio.ensure_future(collect(model, request()))
    call = await server.next_call()
    await call.fail(status, {"error": {"message": said, **error}}, headers)
    with pytest.raises(ModelError) as caught:
        await collecting
    return caught.value


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_says_which_provider_and_never_the_key(
    anthropic_server: AnthropicServer, open_anthropic, status: int
) -> None:
    """Otherwise a key would end up in a conversation, or nobody would know which one to correct (A39)."""
    model = open_anthropic(anthropic_server.url, "sk-ant-api03-canary")
    error = await refused(anthropic_server, model, status, "invalid x-api-key sk-ant-api03-canary sk-ant-api***")
    assert (error.kind, error.retryable) == ("auth", False)
    assert "providers.claude" in error.message
    assert "canary" not in error.message and "sk-ant" not in error.message
    assert "canary" not in repr(model)


async def test_too_many_requests_says_how_long_to_wait(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise we would knock again too early and be refused for longer."""
    model = open_anthropic(anthropic_server.url)
    error = await refused(anthropic_server, model, 429, headers={"Retry-After": "7"})
    assert (error.kind, error.retryable, error.retry_after) == ("limit", True, 7.0)


async def test_an_overloaded_provider_may_be_asked_again(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise the busiest hour of the day would end every run."""
    error = await refused(anthropic_server, open_anthropic(anthropic_server.url), 529, "Overloaded")
    assert error.retryable and "Overloaded" in error.message


@pytest.mark.parametrize(
    ("status", "said", "details"),
    [
        (402, "Check your payment details.", None),
        (400, "Your credit balance is too low to access the Anthropic API.", None),
        (400, "You have reached your specified API usage limits.", None),
        (429, "No more this month.", {"error_code": "enforced_spend_limit_reached"}),
    ],
)
async def test_an_account_without_credit_is_not_tried_again(
    anthropic_server: AnthropicServer, open_anthropic, status: int, said: str, details: dict[str, str] | None
) -> None:
    """Otherwise a run would wait through all its retries for money that does not come."""
    error = await refused(anthropic_server, open_anthropic(anthropic_server.url), status, said, details=details)
    assert (error.kind, error.retryable) == ("limit", False)
    assert said in error.message


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"),
        (413, "Request exceeds the maximum size"),
    ],
)
async def test_a_conversation_that_is_too_long_is_called_that(
    anthropic_server: AnthropicServer, open_anthropic, status: int, said: str
) -> None:
    """Otherwise nobody would shorten it: neither the agent, which can, nor people."""
    error = await refused(anthropic_server, open_anthropic(anthropic_server.url), status, said)
    assert (error.kind, error.retryable) == ("overflow", False)


async def test_an_error_in_the_middle_of_an_answer_ends_it(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise half an answer would pass for a whole one."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), request()))
    call = await anthropic_server.next_call()
    await call.say("Half")
    await call.fail(529, {"error": {"message": "Overloaded"}})
    with pytest.raises(ModelError, match="Overloaded") as caught:
        await collecting
    assert caught.value.retryable


async def test_a_dropped_connection_may_be_tried_again(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise one lost packet would end a run of an hour."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), request()))
    call = await anthropic_server.next_call()
    await call.say("Half")
    call.drop()
    with pytest.raises(ModelError) as caught:
        await collecting
    assert caught.value.retryable


async def test_what_was_sent_is_counted_though_the_answer_broke_off(
    anthropic_server: AnthropicServer, open_anthropic
) -> None:
    """Otherwise a budget would not see what each attempt of a long conversation costs."""
    chunks: list[Chunk] = []
    streaming = asyncio.ensure_future(open_anthropic(anthropic_server.url).stream(request(), chunks.append))
    call = await anthropic_server.next_call()
    await call.begin({"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 1})
    await call.say("Half an")
    await call.fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with pytest.raises(ModelError):
        await streaming
    assert chunks == [TextChunk("Half an"), UsageChunk(Usage(100, 1, 90))]


async def test_ten_megabytes_of_arguments_are_refused_early(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise a model that does not stop would take the server's memory, and with it everyone's runs (A32)."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), request()))
    call = await anthropic_server.next_call()
    piece = "x" * 100_000

    async def flood() -> None:
        await call.tool_piece(0, "", id="c", name="write")
        for _ in range(100):
            await call.tool_piece(0, piece)

    flooding = asyncio.ensure_future(flood())
    with pytest.raises(ModelError, match="tool call of more than 1048576 bytes"):
        await collecting
    await call.closed()  # it need not go on
    await asyncio.gather(flooding, return_exceptions=True)


# -- thoughts that are not taken back ---------------------------------------------------------------------------------

MODIFIED = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)
BOUND = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."


def with_thoughts():
    thoughts = Reasoning(ReasoningData("Hm.", "c2ln"))
    answer = msgspec.structs.replace(message("assistant", thoughts, "Yes."), provider="claude", model="test-model")
    return request(messages=[message("user", "one"), answer, message("user", "two")])


@pytest.mark.parametrize("said", [BOUND, MODIFIED])
async def test_a_session_whose_thoughts_are_refused_goes_on_without_them(
    anthropic_server: AnthropicServer, open_anthropic, said: str
) -> None:
    """Otherwise a session would be lost once its oldest steps are left out: newer models then refuse their thoughts."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), with_thoughts()))
    first = await anthropic_server.next_call()
    await first.fail(400, {"error": {"message": said}})
    second = await anthropic_server.next_call()
    await second.say("On we go.")
    await second.end()
    assert text_of(await collecting) == "On we go."
    assert [block["type"] for block in first.request["messages"][1]["content"]] == ["thinking", "text"]
    assert [block["type"] for block in second.request["messages"][1]["content"]] == ["text"]


async def test_other_refusals_are_not_asked_again(anthropic_server: AnthropicServer, open_anthropic) -> None:
    """Otherwise every wrong request would be sent twice."""
    collecting = asyncio.ensure_future(collect(open_anthropic(anthropic_server.url), with_thoughts()))
    call = await anthropic_server.next_call()
    await call.fail(400, {"error": {"message": "tools.0.name: Field required"}})
    with pytest.raises(ModelError, match="Field required"):
        await collecting
    assert len(anthropic_server.requests) == 1


def test_the_config_can_ask_for_it() -> None:
    """Otherwise nobody could use it."""
    model = build_model("claude", "anthropic", base_url="https://api.anthropic.com", key="canary-2")
    assert repr(model) == "AnthropicModel('claude', 'https://api.anthropic.com')"
