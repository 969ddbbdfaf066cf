"""The connection to a provider: kept open, given up, and never believed."""

import asyncio
import contextlib
import gc
import shutil
import ssl
import subprocess
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from model_requests import collect, request, text_of

from windlass import limits
from windlass.models.openai import OpenAIModel
from windlass.wire.model import Chunk, ModelError

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
RawServer = Callable[[Answer], Awaitable[str]]
OpenModel = Callable[..., OpenAIModel]

_EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_WORD = b'data: {"choices":[{"delta":{"content":"word "}}]}\n\n'


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


_WHOLE = _EVENTS + chunk(_WORD) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def saying(answer: bytes) -> Answer:
    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return write


async def next_request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    await reader.readexactly(length)


async def test_a_kept_connection_that_closes_as_it_is_used_is_replaced(
    raw_server: RawServer, open_model: OpenModel
) -> None:
    """Otherwise every step after a pause could fail once, and the run would wait and try again."""
    connections = 0

    async def close_at_the_second_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(_WHOLE)
        if connections == 1:
            await next_request(reader)

    model = open_model(await raw_server(close_at_the_second_request))
    answers = [text_of(await collect(model, request())) for _ in range(2)]
    assert (answers, connections) == (["word ", "word "], 2)


async def test_a_new_connection_that_closes_at_once_is_not_tried_again(
    raw_server: RawServer, open_model: OpenModel
) -> None:
    """Otherwise a provider that is down would be sent every prompt twice."""
    connections = 0

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1

    with pytest.raises(ModelError, match="broke off") as caught:
        await collect(open_model(await raw_server(close)), request())
    assert (connections, caught.value.retryable) == (1, True)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000 + b"\r\n", id="endless headers"),
        pytest.param(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nx", id="upgrade"
        ),
        pytest.param(_EVENTS + chunk(_WORD), id="cut off"),
        pytest.param(_EVENTS + chunk(_WORD) + b"zz\r\n", id="broken chunk"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunk(b"{"),
            id="cut off, and spelled otherwise",
        ),
    ],
)
async def test_what_is_no_answer_is_an_error_and_not_an_answer(
    raw_server: RawServer, open_model: OpenModel, answer: bytes
) -> None:
    """Otherwise half an answer, or none, would pass for what the model said."""
    with pytest.raises(ModelError, match=r"broke off|middle of its answer"):
        await collect(open_model(await raw_server(saying(answer))), request())


@pytest.mark.parametrize("more", [_WHOLE, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
async def test_a_second_answer_to_one_request_is_no_answer_to_the_next(
    raw_server: RawServer, open_model: OpenModel, more: bytes
) -> None:
    """Otherwise what one conversation was told would be shown in another."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(_WHOLE + more)
        await reader.read()

    model = open_model(await raw_server(answer))
    answers = [text_of(await collect(model, request())) for _ in range(2)]
    assert (answers, connections) == (["word ", "word "], 2)


async def test_bytes_on_an_idle_connection_end_it(raw_server: RawServer, open_model: OpenModel) -> None:
    """Otherwise they would be taken for the beginning of the next answer."""
    ended = asyncio.Event()
    speak = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_WHOLE)
        await speak.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()

    model = open_model(await raw_server(answer))
    await collect(model, request())
    speak.set()
    async with asyncio.timeout(5):
        await ended.wait()


async def test_an_answer_that_is_over_holds_no_conversation(raw_server: RawServer, open_model: OpenModel) -> None:
    """Otherwise each idle connection would keep all messages and pictures of the last run that used it."""

    class Conversation:
        def take(self, chunk: Chunk) -> None:
            pass

    conversation = Conversation()
    gone = weakref.ref(conversation)
    model = open_model(await raw_server(saying(_WHOLE)))
    await model.stream(request(), conversation.take)
    del conversation
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("address", ["http://user:word@127.0.0.1/v1", "http://127.0.0.1/v1?key=word", "http://[::1/v1"])
async def test_an_address_with_more_than_an_address_is_refused(open_model: OpenModel, address: str) -> None:
    """Otherwise a password in it would be shown in errors, and never reach the provider."""
    with pytest.raises(ModelError, match="address") as caught:
        await collect(open_model(address), request())
    assert "word" not in caught.value.message


async def test_what_comes_before_the_answer_is_not_taken_for_it(raw_server: RawServer, open_model: OpenModel) -> None:
    """Otherwise a proxy that says 103 would end every answer before its first word."""
    early = b"HTTP/1.1 103 Early Hints\r\nContent-Type: application/json\r\n\r\n"
    assert text_of(await collect(open_model(await raw_server(saying(early + _WHOLE))), request())) == "word "


async def test_an_answer_without_a_length_ends_with_the_connection(
    raw_server: RawServer, open_model: OpenModel
) -> None:
    """Otherwise simple local servers, which just close, could not be used."""
    head = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    url = await raw_server(saying(head + _WORD + b"data: [DONE]\n\n"))
    assert text_of(await collect(open_model(url), request())) == "word "


async def test_what_the_agent_refuses_ends_the_answer_and_drops_the_connection(
    raw_server: RawServer, open_model: OpenModel
) -> None:
    """Otherwise an answer that outgrew its bounds would go on, and cost, with nobody listening."""
    dropped = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_EVENTS + chunk(_WORD))
        await reader.read()
        dropped.set()

    def refuse(chunk: Chunk) -> None:
        raise ModelError("too long to be one")

    with pytest.raises(ModelError, match="too long to be one"):
        await open_model(await raw_server(endless)).stream(request(), refuse)
    async with asyncio.timeout(5):
        await dropped.wait()


async def test_a_provider_that_is_faster_than_we_are_has_to_wait(
    raw_server: RawServer, open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise what models send faster than it can be dealt with would pile up in our memory."""
    monkeypatch.setattr(limits, "MODEL_ROUND_WORK_SECONDS", 0.0)  # one turn a round: the slowest we can be
    waiting: list[int] = []

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_EVENTS)
        for _ in range(100):
            writer.write(chunk(_WORD * 2_000))  # 10 MB together
            await writer.drain()
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    model = open_model(await raw_server(flood))
    words = 0

    def take(chunk: Chunk) -> None:
        nonlocal words
        words += 1
        if model._streams is not None:
            waiting.append(sum(len(received) for _, received in model._streams._rounds._waiting))

    await model.stream(request(), take)
    assert words == 200_001  # and the finish
    assert max(waiting) < limits.MODEL_INBOX_BYTES + 512 * 1024  # and what one read of a socket gives


async def test_a_connection_that_nobody_uses_is_closed(
    raw_server: RawServer, open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a router that forgot it would swallow the next prompt, and the run would wait for minutes."""
    monkeypatch.setattr(limits, "MODEL_IDLE_SECONDS", 0.05)
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_WHOLE)
        assert await reader.read() == b""
        closed.set()

    model = open_model(await raw_server(answer))
    assert text_of(await collect(model, request())) == "word "
    async with asyncio.timeout(5):
        await closed.wait()


async def test_an_error_at_the_very_end_drops_the_connection(raw_server: RawServer, open_model: OpenModel) -> None:
    """Otherwise each such answer would leave a socket open that nobody knows of."""
    dropped = asyncio.Event()
    unfinished = _EVENTS + chunk(b'data: {"error": {"message": "overloaded"}}') + b"0\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(unfinished)
        await reader.read()
        dropped.set()

    with pytest.raises(ModelError, match="overloaded"):
        await collect(open_model(await raw_server(answer)), request())
    async with asyncio.timeout(5):
        await dropped.wait()


@pytest.mark.parametrize("key", ["two\r\nX-Evil: lines", "nul\0", "kéy"])
async def test_a_key_that_cannot_be_a_header_is_refused(raw_server: RawServer, open_model: OpenModel, key: str) -> None:
    """Otherwise a line break in a pasted key would put headers of its own into every request (A39)."""
    with pytest.raises(ModelError, match="characters that cannot be sent") as caught:
        await collect(open_model(await raw_server(saying(_WHOLE)), key), request())
    assert key not in caught.value.message


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
@pytest.mark.parametrize("trusted", [True, False])
async def test_https_is_believed_only_with_a_certificate_that_is_trusted(
    open_model: OpenModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    """Otherwise anyone on the way could read the key and write the answer."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days"]
    make += [
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        key,
        "-out",
        certificate,
    ]
    await asyncio.to_thread(subprocess.run, make, check=True, capture_output=True)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await next_request(reader)
            writer.write(_WHOLE)
            await writer.drain()
        finally:
            writer.close()

    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        if trusted:
            assert text_of(await collect(open_model(url), request())) == "word "
        else:
            with pytest.raises(ModelError, match=r"(?i)cannot be reached.*certificate"):
                await collect(open_model(url), request())
