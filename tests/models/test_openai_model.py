"""The adapter against a real HTTP server that speaks the protocol as it should be spoken."""

import asyncio
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from email.utils import formatdate

import pytest
from model_requests import calls_of, collect, reasoning_of, request, text_of, tool_spec

from windlass import limits
from windlass.testing.model_server import ModelServer
from windlass.wire.model import Chunk, FinishChunk, ModelError, TextChunk, UsageChunk
from windlass.wire.runs import Usage


async def test_an_answer_streams_word_by_word(server: ModelServer, open_model) -> None:
    """Otherwise people would stare at nothing until the whole answer is there."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_model(server.url).stream(request(), chunks.put_nowait))
    call = await server.next_call()
    await call.say("Hello ")
    assert await chunks.get() == TextChunk("Hello ")
    await call.say("there.")
    assert await chunks.get() == TextChunk("there.")
    await call.end()
    await streaming
    assert chunks.get_nowait() == FinishChunk("end_turn")


async def test_reasoning_text_and_calls_come_apart(server: ModelServer, open_model) -> None:
    """Otherwise thoughts would be shown as the answer, or a tool called with half of its arguments."""
    server.auto(lambda _: [{"think": "hm"}, {"say": "Looking."}, {"tool": "ls", "input": {"path": "a/b"}, "id": "c1"}])
    chunks = await collect(open_model(server.url), request())
    assert (reasoning_of(chunks), text_of(chunks), calls_of(chunks)) == (
        "hm",
        "Looking.",
        [("c1", "ls", '{"path":"a/b"}')],
    )
    assert chunks[-1] == FinishChunk("tool_use")


async def test_usage_is_reported_once_with_cached_tokens(server: ModelServer, open_model) -> None:
    """Otherwise people would pay for tokens that nobody counted."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    running = {"prompt_tokens": 5, "completion_tokens": 1}
    await call.event({"choices": [{"delta": {"content": "x"}}], "usage": running})
    await call.end(usage={"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}})
    assert [chunk for chunk in await collecting if isinstance(chunk, UsageChunk)] == [UsageChunk(Usage(10, 3, 8))]


@pytest.mark.parametrize(
    ("said", "ours"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "content_filter"), ("surprise", "unknown")],
)
async def test_finish_reasons_are_ours(server: ModelServer, open_model, said: str, ours: str) -> None:
    """Otherwise a cut-off answer would look like a finished one."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    await call.say("x")
    await call.end(said)
    assert (await collecting)[-1].reason == ours


async def test_the_request_has_the_key_the_tools_and_asks_for_usage(server: ModelServer, open_model) -> None:
    """Otherwise a provider would refuse us, not know our tools, or not tell what an answer cost."""
    model = open_model(server.url, "secret-key")
    collecting = asyncio.ensure_future(collect(model, request(tools=[tool_spec("ls", "path")], max_tokens=7)))
    call = await server.next_call()
    await call.end()
    await collecting
    body = call.request
    assert call.headers["Authorization"] == "Bearer secret-key"
    assert body["stream_options"] == {"include_usage": True}
    assert (body["tools"][0]["function"]["name"], body["max_tokens"]) == ("ls", 7)


async def test_cancelling_in_the_middle_drops_the_connection_at_once(server: ModelServer, open_model) -> None:
    """Otherwise a cancelled run would go on generating at the provider, and cost (B18)."""
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()
    streaming = asyncio.ensure_future(open_model(server.url).stream(request(), chunks.put_nowait))
    call = await server.next_call()
    await call.say("word")
    await chunks.get()
    streaming.cancel()
    await call.closed()
    with pytest.raises(asyncio.CancelledError):
        await streaming


async def test_cancelling_while_the_model_is_silent_drops_the_connection(server: ModelServer, open_model) -> None:
    """Otherwise a cancel before the first token would wait for the model (B05)."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    collecting.cancel()
    await call.closed()
    with pytest.raises(asyncio.CancelledError):
        await collecting


async def test_a_second_request_uses_the_same_connection(server: ModelServer, open_model) -> None:
    """Otherwise every step of a run would pay for a new TLS handshake."""
    peers = set()
    model = open_model(server.url)
    for _ in range(3):
        collecting = asyncio.ensure_future(collect(model, request()))
        call = await server.next_call()
        peers.add(call.peer)
        await call.say("x")
        await call.end()
        await collecting
    assert len(peers) == 1


async def test_a_body_that_ends_a_little_after_its_last_event_keeps_the_connection(
    server: ModelServer, open_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise whether a connection is used again would depend on how a provider cuts its packets."""
    monkeypatch.setattr(limits, "MODEL_TRAILER_SECONDS", 5.0)
    model = open_model(server.url)
    first = asyncio.ensure_future(collect(model, request()))
    call = await server.next_call()
    await call.raw(b"data: [DONE]\n\n")
    server.auto(lambda _: [{"say": "x"}])
    await collect(open_model(server.url), request())  # a whole round trip: the first has seen its last event
    server.auto(None)
    await call.end_body()
    await first
    second = asyncio.ensure_future(collect(model, request()))
    next_call = await server.next_call()
    await next_call.end()
    await second
    assert next_call.peer == call.peer


async def refused(server: ModelServer, model, status: int, body: dict | None = None, headers=None) -> ModelError:
    collecting = asyncio.ensure_future(collect(model, request()))
    call = await server.next_call()
    await call.fail(status, body, headers)
    with pytest.raises(ModelError) as caught:
        await collecting
    return caught.value


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_says_which_provider_and_never_the_key(
    server: ModelServer, open_model, status: int
) -> None:
    """Otherwise a key would end up in a conversation, or nobody would know which one to correct (A39)."""
    model = open_model(server.url, "sk-canary-123456")
    error = await refused(server, model, status, {"error": {"message": "Bad key sk-canary-123456, sk-can***456"}})
    assert (error.kind, error.retryable) == ("auth", False)
    assert "providers.local" in error.message
    assert "canary" not in error.message and "sk-can" not in error.message


async def test_a_missing_key_is_said_to_be_missing(server: ModelServer, open_model) -> None:
    """Otherwise a new user would look for a mistake in a key that was never set."""
    error = await refused(server, open_model(server.url, ""), 401)
    assert "has none" in error.message


async def test_too_many_requests_says_how_long_to_wait(server: ModelServer, open_model) -> None:
    """Otherwise we would knock again too early and be refused for longer."""
    error = await refused(server, open_model(server.url), 429, headers={"Retry-After": "7"})
    assert (error.kind, error.retryable, error.retry_after) == ("limit", True, 7.0)


async def test_a_retry_date_is_understood_too(server: ModelServer, open_model) -> None:
    """Otherwise providers that answer with a date would be asked again at once."""
    date = formatdate(time.time() + 30, usegmt=True)
    error = await refused(server, open_model(server.url), 503, headers={"Retry-After": date})
    assert error.retry_after is not None and 20 < error.retry_after <= 31


async def test_an_account_without_credit_is_not_tried_again(server: ModelServer, open_model) -> None:
    """Otherwise a run would wait through all its retries for money that does not come."""
    body = {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}
    error = await refused(server, open_model(server.url), 429, body)
    assert (error.kind, error.retryable) == ("limit", False)


async def test_a_conversation_that_is_too_long_is_called_that(server: ModelServer, open_model) -> None:
    """Otherwise people would see a number of tokens and not know that a new session helps."""
    body = {
        "error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}
    }
    error = await refused(server, open_model(server.url), 400, body)
    assert (error.kind, error.retryable) == ("overflow", False)
    assert "new session" in error.message


@pytest.mark.parametrize(("status", "retryable"), [(500, True), (502, True), (529, True), (400, False), (422, False)])
async def test_only_the_providers_own_problems_are_tried_again(
    server: ModelServer, open_model, status: int, retryable: bool
) -> None:
    """Otherwise a wrong request would be sent five times, or a hiccup would end a long run."""
    assert (await refused(server, open_model(server.url), status)).retryable is retryable


async def test_an_unknown_model_is_named(server: ModelServer, open_model) -> None:
    """Otherwise a typo in the config would be a bare 404."""
    assert "'test-model'" in (await refused(server, open_model(server.url), 404)).message


async def test_an_error_in_the_middle_of_an_answer_ends_it(server: ModelServer, open_model) -> None:
    """Otherwise half an answer would pass for a whole one."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    await call.say("Half")
    await call.fail(body={"error": {"message": "Overloaded", "type": "overloaded_error"}})
    with pytest.raises(ModelError, match="Overloaded") as caught:
        await collecting
    assert caught.value.retryable


async def test_a_dropped_connection_may_be_tried_again(server: ModelServer, open_model) -> None:
    """Otherwise one lost packet would end a run of an hour."""
    collecting = asyncio.ensure_future(collect(open_model(server.url), request()))
    call = await server.next_call()
    await call.say("Half")
    call.drop()
    with pytest.raises(ModelError) as caught:
        await collecting
    assert caught.value.retryable


async def test_a_server_that_does_not_run_is_named_with_its_address(open_model) -> None:
    """Otherwise somebody whose local server is off would not know where to look."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can listen there meanwhile
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelError) as caught:
            await collect(open_model(url), request())
    assert (caught.value.kind, caught.value.retryable) == ("unreachable", True)
    assert url in caught.value.message and "Check that the server runs" in caught.value.message


async def test_a_server_that_does_not_accept_is_given_up(open_model) -> None:
    """Otherwise an address behind a firewall would hold a run for minutes, silently."""
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # fills the queue of connections; the kernel then lets further ones wait
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        with pytest.raises(ModelError, match=r"did not answer at .* within 0\.2 s") as caught:
            await collect(open_model(url, connect_seconds=0.2), request())
    assert (caught.value.kind, caught.value.retryable) == ("unreachable", True)


async def test_silence_is_given_up(server: ModelServer, open_model) -> None:
    """Otherwise a provider that hangs would hold a run for ever."""
    collecting = asyncio.ensure_future(collect(open_model(server.url, silence_seconds=0.2), request()))
    call = await server.next_call()
    await call.say("Half")
    with pytest.raises(ModelError, match=r"sent nothing for 0\.2 s") as caught:
        await collecting
    assert caught.value.retryable


async def test_the_environment_cannot_put_a_proxy_in_between(
    server: ModelServer, open_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a variable left over in a shell would send prompts and the key somewhere else."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server.auto(lambda _: [{"say": "direct"}])
    assert text_of(await collect(open_model(server.url), request())) == "direct"


def test_a_key_is_not_in_the_repr(open_model) -> None:
    """Otherwise a log line with the model in it would hold the key (A39)."""
    assert "canary" not in repr(open_model("http://127.0.0.1:1/v1", "canary"))


def test_building_a_model_does_not_import_the_http_library() -> None:
    """Otherwise every start, also of a worker and of the demo, would take a third of a second longer."""
    code = (
        "import sys; from windlass.models.providers import build_model; build_model('x', 'scripted'); "
        "build_model('y', 'openai', base_url='http://127.0.0.1:1'); sys.exit('aiohttp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
