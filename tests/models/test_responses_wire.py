"""The Responses adapter byte by byte, and against servers that speak the protocol in their own way."""

import asyncio
import time

import msgspec
import pytest
from model_requests import calls_of, collect, reasoning_of, request, text_of

from windlass import limits
from windlass.models.refusals import Refusals
from windlass.models.responses_chunks import ResponsesReader
from windlass.models.responses_thoughts import signature_of
from windlass.models.sse import EventDecoder
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, UsageChunk
from windlass.wire.runs import Usage

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n"


def event(type: str, **fields: object) -> bytes:
    data = msgspec.json.encode({"type": type, "sequence_number": 0, **fields})
    return b"event: " + type.encode() + b"\ndata: " + data + b"\n\n"


def item(type: str, **fields: object) -> dict[str, object]:
    return {"type": type, "id": f"{type}_1", **fields}


THOUGHT = item("reasoning", summary=[{"type": "summary_text", "text": "Grübel."}], encrypted_content="geheim")
MESSAGE = item("message", role="assistant", content=[{"type": "output_text", "text": "Grüße 😀"}])
CALL = item("function_call", call_id="c1", name="view", arguments='{"path":"ü"}')
USAGE = {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 5}}
COMPLETED = event(
    "response.completed", response={"status": "completed", "output": [THOUGHT, MESSAGE, CALL], "usage": USAGE}
)
RECORDED = b"".join(
    [
        event("response.created", response={"status": "in_progress", "output": []}),
        event("response.in_progress", response={"status": "in_progress", "output": []}),
        event("response.output_item.added", output_index=0, item={**THOUGHT, "summary": [], "encrypted_content": "g"}),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=0, part={"text": ""}),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Grübel."),
        event("response.reasoning_summary_text.done", output_index=0, summary_index=0, text="Grübel."),
        event("response.output_item.done", output_index=0, item=THOUGHT),
        event("response.output_item.added", output_index=1, item={**MESSAGE, "content": []}),
        event("response.content_part.added", output_index=1, content_index=0, part={"type": "output_text", "text": ""}),
        event("response.output_text.delta", output_index=1, content_index=0, delta="Grüße ", logprobs=[]),
        event("response.output_text.delta", output_index=1, content_index=0, delta="😀", logprobs=[]),
        event("response.output_text.done", output_index=1, content_index=0, text="Grüße 😀"),
        event("response.output_item.done", output_index=1, item=MESSAGE),
        event("response.output_item.added", output_index=2, item={**CALL, "arguments": ""}),
        event("response.function_call_arguments.delta", output_index=2, delta='{"path":'),
        event("response.function_call_arguments.delta", output_index=2, delta='"ü"}'),
        event("response.function_call_arguments.done", output_index=2, arguments='{"path":"ü"}'),
        event("response.output_item.done", output_index=2, item=CALL),
        COMPLETED,
    ]
)


class Reading:
    """A reader and what it gave."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        refusals = Refusals("local", "http://127.0.0.1", "")
        self.reader = ResponsesReader("local", refusals, self.chunks.append)
        self.decoder = EventDecoder(limits.MODEL_LINE_BYTES)

    def feed(self, *pieces: bytes) -> "Reading":
        for piece in pieces:
            for data in self.decoder.feed(piece):
                self.reader.read(data)
        return self


def read(*pieces: bytes) -> list[Chunk]:
    reading = Reading().feed(*pieces)
    reading.reader.finish()
    return reading.chunks


def check(chunks: list[Chunk]) -> None:
    assert (reasoning_of(chunks), text_of(chunks)) == ("Grübel.", "Grüße 😀")
    assert calls_of(chunks) == [("c1", "view", '{"path":"ü"}')]
    assert ReasoningChunk("", signature_of("reasoning_1", "geheim", False), 0) in chunks
    assert chunks[-2:] == [UsageChunk(Usage(9, 4, 5)), FinishChunk("tool_use")]


def test_a_stream_cut_anywhere_gives_the_same_answer() -> None:
    """Otherwise a word, an umlaut or a call would be lost now and then, by how the network cuts its packets."""
    whole = read(RECORDED)
    check(whole)
    for cut in range(1, len(RECORDED)):
        assert read(RECORDED[:cut], RECORDED[cut:]) == whole


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
async def test_pieces_of_any_size_give_the_same_answer_over_a_socket(raw_server, open_responses, size: int) -> None:
    """Otherwise what holds for the decoder might not hold for the way to it."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for start in range(0, len(RECORDED), size):
            writer.write(RECORDED[start : start + size])
            await asyncio.sleep(0)  # its own packet, as far as the kernel goes along
        await writer.drain()

    check(await collect(open_responses(await raw_server(answer)), request()))


async def test_a_whole_answer_instead_of_a_stream_is_taken(raw_server, open_responses) -> None:
    """Otherwise servers that ignore `stream` could not be used at all."""
    body = msgspec.json.encode(
        {"object": "response", "status": "completed", "error": None, "output": [THOUGHT, MESSAGE, CALL], "usage": USAGE}
    )

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()

    check(await collect(open_responses(await raw_server(answer)), request()))


def test_an_answer_that_comes_only_with_its_last_event_is_taken() -> None:
    """Otherwise gateways that put a whole answer into a stream would seem to say nothing."""
    check(read(COMPLETED))


def test_items_that_come_whole_are_taken() -> None:
    """Otherwise servers that send no pieces would seem to say nothing."""
    done = [
        event("response.output_item.done", output_index=i, item=one) for i, one in enumerate((THOUGHT, MESSAGE, CALL))
    ]
    check(read(*done, COMPLETED))


def test_arguments_before_the_name_of_their_call_are_kept_for_it() -> None:
    """Otherwise a server that does not announce its calls would have them all without id, name and arguments."""
    delta = event("response.function_call_arguments.delta", output_index=0, delta='{"path":')
    chunks = read(delta, event("response.output_item.done", output_index=0, item=CALL), COMPLETED)
    assert calls_of(chunks) == [("c1", "view", '{"path":"ü"}')]


def test_kinds_of_events_that_we_do_not_know_are_passed_over() -> None:
    """Otherwise the next new feature of the provider would break every run."""
    new = [
        event("response.new_thing.delta", delta={"x": 1}, output_index="first"),
        event("response.audio.delta", delta="QUJD"),
        event("response.output_item.done", output_index=7, item=item("web_search_call", status="completed")),
        event(
            "response.output_item.added", output_index=8, item=item("tool_search_call", arguments={"x": 1}, content="")
        ),
        event("keepalive", sequence_number=3),
        b"data: {}\n\n",
    ]
    check(read(*new, RECORDED, b"data: [DONE]\n\n"))


@pytest.mark.parametrize(
    "data",
    [b"{nonsense", b"[]", b'{"type": "response.output_text.delta", "output_index": "x"}', b'{"type": 5}', b"\xff"],
)
def test_nonsense_is_an_error_that_names_the_provider(data: bytes) -> None:
    """Otherwise people would see a decoder's exception."""
    with pytest.raises(ModelError, match="local sent something") as caught:
        read(b"data: " + data + b"\n\n")
    assert caught.value.retryable


def test_an_answer_of_endless_items_is_refused() -> None:
    """Otherwise a broken provider could make us remember for ever (A32)."""
    with pytest.raises(ModelError, match="parts"):
        read(
            *(event("response.output_item.done", output_index=i, item=MESSAGE) for i in range(limits.ANSWER_PARTS + 1))
        )


def test_a_token_costs_a_few_microseconds() -> None:
    """Otherwise a few hundred runs at once would be more than one server can carry. (The aim is 2; this is a fuse.)"""
    fields = {"item_id": "msg_0123456789abcdef", "output_index": 1, "content_index": 0, "logprobs": []}
    data = (
        event("response.output_text.delta", delta=" word", obfuscation="Xy7Qa81bZ", **fields)
        .split(b"data: ")[1]
        .strip()
    )
    reader = Reading().reader
    begun = time.process_time()
    for _ in range(20_000):
        reader.read(data)
    assert (time.process_time() - begun) / 20_000 < 50e-6
