"""The adapter against servers that speak the protocol in their own way, byte by byte."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from model_requests import calls_of, collect, request, text_of

from windlass import limits
from windlass.models.openai_chunks import ChunkReader
from windlass.models.refusals import Refusals
from windlass.models.sse import EventDecoder
from windlass.wire.model import Chunk, FinishChunk, ModelError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def answering(*pieces: bytes):
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # its own packet, as far as the kernel goes along

    return answer


def delta(**fields: object) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"delta": fields}]}) + b"\n\n"


DONE = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


async def test_a_character_cut_in_two_arrives_whole(raw_server, open_model) -> None:
    """Otherwise every umlaut at the border of a packet would become a question mark."""
    body = 'data: {"choices": [{"delta": {"content": "Gr\u00fc\u00dfe \U0001f600"}}]}\n\n'.encode() + DONE
    url = await raw_server(answering(HEAD, *(body[i : i + 1] for i in range(len(body)))))
    assert text_of(await collect(open_model(url), request())) == "Gr\u00fc\u00dfe \U0001f600"


async def test_many_events_in_one_packet_all_arrive(raw_server, open_model) -> None:
    """Otherwise a fast provider would lose words."""
    url = await raw_server(answering(HEAD + b": hi\r\n\r\n" + delta(content="a") + delta(content="b") + DONE))
    assert text_of(await collect(open_model(url), request())) == "ab"


async def test_an_answer_that_just_stops_is_not_taken_for_a_whole_one(raw_server, open_model) -> None:
    """Otherwise a provider's crash would look like a short answer, and its calls would be run."""
    url = await raw_server(answering(HEAD + delta(content="Half")))
    with pytest.raises(ModelError, match="in the middle") as caught:
        await collect(open_model(url), request())
    assert caught.value.retryable


async def test_a_finish_without_done_is_an_end(raw_server, open_model) -> None:
    """Otherwise servers that leave [DONE] away could not be used."""
    url = await raw_server(answering(HEAD + delta(content="All") + DONE.partition(b"data: [DONE]")[0]))
    assert (await collect(open_model(url), request()))[-1] == FinishChunk("end_turn")


async def test_a_last_line_without_its_newline_is_an_end(raw_server, open_model) -> None:
    """Otherwise servers that leave the last newline away would seem to break off every time."""
    url = await raw_server(answering(HEAD + delta(content="All") + b"data: [DONE]"))
    assert (await collect(open_model(url), request()))[-1] == FinishChunk("end_turn")


async def test_done_ends_it_though_the_server_keeps_the_connection_open(raw_server, open_model) -> None:
    """Otherwise a run would hang at the end of every answer of such a server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + delta(content="All") + DONE)
        await reader.read()  # until the client closes

    url = await raw_server(answer)
    async with asyncio.timeout(5):
        assert text_of(await collect(open_model(url), request())) == "All"


async def test_nonsense_is_an_error_that_names_the_provider(raw_server, open_model) -> None:
    """Otherwise people would see a decoder's exception."""
    url = await raw_server(answering(HEAD + b"data: {nonsense\n\n"))
    with pytest.raises(ModelError, match="local sent something"):
        await collect(open_model(url), request())


async def test_an_endless_line_is_refused(raw_server, open_model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one broken provider could take all of the server's memory (A32)."""
    monkeypatch.setattr(limits, "MODEL_LINE_BYTES", 10_000)
    url = await raw_server(answering(HEAD + b"data: ", *[b"x" * 1_000] * 50))
    with pytest.raises(ModelError, match="more than 10000 bytes"):
        await collect(open_model(url), request())


async def test_a_redirect_is_not_followed(raw_server, open_model) -> None:
    """Otherwise the prompt and the key would go where the config never sent them (A42)."""
    url = await raw_server(
        answering(b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/v2\r\nContent-Length: 0\r\n\r\n")
    )
    with pytest.raises(ModelError, match=r"redirects .* to http://127\.0\.0\.1:9/v2"):
        await collect(open_model(url), request())


async def test_a_web_page_is_said_to_be_one(raw_server, open_model) -> None:
    """Otherwise a base_url without /v1 would be a riddle."""
    url = await raw_server(
        answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html>hi</html>")
    )
    with pytest.raises(ModelError, match="web page"):
        await collect(open_model(url), request())


async def test_a_whole_answer_instead_of_a_stream_is_taken(raw_server, open_model) -> None:
    """Otherwise servers that ignore `stream` could not be used at all."""
    body = msgspec.json.encode({"choices": [{"message": {"content": "All at once"}, "finish_reason": "stop"}]})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    url = await raw_server(answering(head + body))
    assert text_of(await collect(open_model(url), request())) == "All at once"


def read(*deltas: dict[str, object], finish: str = "tool_calls") -> list[Chunk]:
    chunks: list[Chunk] = []
    reader = ChunkReader("local", Refusals("local", "http://127.0.0.1", ""), chunks.append)
    for fields in deltas:
        reader.read(msgspec.json.encode({"choices": [{"delta": fields}]}))
    reader.read(msgspec.json.encode({"choices": [{"finish_reason": finish}]}))
    reader.finish()
    return chunks


def piece(index: int | None = None, id: str | None = None, name: str | None = None, arguments: object = None) -> dict:
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


TWO_CALLS = [("a", "ls", '{"x":1}'), ("b", "view", '{"y":2}')]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [
                piece(0, "a", "ls", ""),
                piece(1, "b", "view", '{"y"'),
                piece(0, arguments='{"x":1}'),
                piece(1, arguments=":2}"),
            ],
            id="in pieces by index, interleaved",
        ),
        pytest.param([piece(None, "a", "ls", '{"x":1}'), piece(None, "b", "view", '{"y":2}')], id="whole, no index"),
        pytest.param([piece(0, "a", "ls", '{"x":1}'), piece(0, "b", "view", '{"y":2}')], id="whole, all with index 0"),
        pytest.param([piece(0, "a", "ls", {"x": 1}), piece(1, "b", "view", {"y": 2})], id="arguments as an object"),
        pytest.param(
            [piece(0, "a", "ls", '{"x"'), piece(0, "a", "ls", ":1}"), piece(1, "b", "view", '{"y":2}')],
            id="id and name repeated in every piece",
        ),
        pytest.param(
            [piece(0, "a"), piece(0, name="ls"), piece(0, arguments='{"x":1}'), piece(1, "b", "view", '{"y":2}')],
            id="the name after the id",
        ),
        pytest.param(
            [
                piece(None, "a", "ls", '{"x"'),
                piece(None, arguments=":1}"),
                piece(None, "b", "view"),
                piece(arguments='{"y":2}'),
            ],
            id="in pieces, no index",
        ),
    ],
)
def test_two_calls_are_two_calls_however_they_are_sent(deltas: Sequence[dict[str, object]]) -> None:
    """Otherwise a call would get another's arguments, or two calls become one."""
    assert calls_of(read(*deltas)) == TWO_CALLS


def test_calls_without_ids_get_ids() -> None:
    """Otherwise their results could not be told apart."""
    calls = calls_of(read(piece(0, None, "ls", "{}"), piece(1, None, "view", "{}")))
    assert [id for id, _, _ in calls] == ["call_0", "call_1"]


def test_a_call_that_never_gets_a_name_is_still_told() -> None:
    """Otherwise the model would wait for the result of a call that nobody saw."""
    assert calls_of(read(piece(0, "a", None, "{}"))) == [("a", "", "{}")]


def test_more_calls_than_the_limit_are_refused() -> None:
    """Otherwise a malfunctioning model could start thousands of tools (A32)."""
    with pytest.raises(ModelError, match="tool calls at once"):
        read(*(piece(number, f"c{number}", "ls") for number in range(limits.TOOL_CALLS_PER_STEP + 1)))


@pytest.mark.parametrize("pieces", [10, 1])
def test_ten_megabytes_of_arguments_are_refused(pieces: int) -> None:
    """Otherwise one model that does not stop could take all of the server's memory (A32)."""
    more = [piece(0, arguments="x" * (10_000_000 // pieces)) for _ in range(pieces)]
    with pytest.raises(ModelError, match=f"more than {limits.TOOL_ARGUMENTS_BYTES} bytes"):
        read(piece(0, "a", "write"), *more)


def test_a_made_up_tool_and_broken_arguments_pass_through() -> None:
    """Otherwise the model would not be told what is wrong with its call."""
    assert calls_of(read(piece(0, "a", "no.such tool", "{not json"))) == [("a", "no.such tool", "{not json")]


def test_an_empty_answer_is_an_answer() -> None:
    """Otherwise the agent could not say that the model said nothing."""
    assert read(finish="stop") == [FinishChunk("end_turn")]


RECORDED = (
    delta(role="assistant", reasoning_content="Gr\u00fcbel.")
    + delta(content="Gr\u00fc\u00dfe ")
    + delta(content="\U0001f600")
    + delta(**piece(0, "a", "ls", '{"x"'))
    + delta(**piece(1, "b", "view", '{"y"'))
    + delta(**piece(0, arguments=":1}"))
    + delta(**piece(1, arguments=":2}"))
    + b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}\n\n'
    + DONE
)


def read_bytes(*pieces: bytes) -> list[Chunk]:
    chunks: list[Chunk] = []
    reader = ChunkReader("local", Refusals("local", "http://127.0.0.1", ""), chunks.append)
    decoder = EventDecoder(limits.MODEL_LINE_BYTES)
    for received in pieces:
        for data in decoder.feed(received):
            reader.read(data)
    reader.finish()
    return chunks


def test_a_stream_cut_anywhere_gives_the_same_answer() -> None:
    """Otherwise a word, an umlaut or a call would be lost now and then, by how the network cuts its packets."""
    whole = read_bytes(RECORDED)
    assert (text_of(whole), calls_of(whole)) == ("Gr\u00fc\u00dfe \U0001f600", TWO_CALLS)
    for cut in range(1, len(RECORDED)):
        assert read_bytes(RECORDED[:cut], RECORDED[cut:]) == whole


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thoughts_are_signed_once_with_the_name_they_came_by(field: str) -> None:
    """Otherwise they could not go back to a server that wants them, under the only name it takes."""
    chunks = read({field: "hm"}, {field: "m"}, finish="stop")
    assert [chunk.signature for chunk in chunks[:2]] == [field, ""]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_found_under_both_names(field: str) -> None:
    """Otherwise half of the reasoning models would seem not to think."""
    assert read({field: "hm"}, finish="stop")[0].text == "hm"
