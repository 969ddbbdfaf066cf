"""Events of a Messages stream become our chunks, however they are cut."""

from typing import Any

import msgspec
import pytest
from anthropic_recordings import EVERYTHING, block, call_block, event, start, stop, text_block
from model_requests import calls_of, reasoning_of, text_of

from windlass import limits
from windlass.models.anthropic_chunks import ChunkReader
from windlass.models.refusals import Refusals
from windlass.models.sse import EventDecoder
from windlass.wire.model import Chunk, FinishChunk, ModelError, ReasoningChunk, TextChunk, ToolCallChunk, UsageChunk
from windlass.wire.runs import Usage


def read(*packets: bytes) -> list[Chunk]:
    """What an answer that came in these packets gives; the connection ends after the last."""
    chunks: list[Chunk] = []
    decoder = EventDecoder(limits.MODEL_LINE_BYTES)
    reader = ChunkReader("claude", Refusals("claude", "http://127.0.0.1", "canary-key"), chunks.append)
    for packet in packets:
        for data in decoder.feed(packet):
            reader.read(data)
    for data in decoder.finish():
        reader.read(data)
    reader.finish()
    return chunks


WHOLE = [
    ReasoningChunk("Let me ", block=0),
    ReasoningChunk("look. \U0001f914", block=0),
    ReasoningChunk("", "RXJzdGU=", block=0),
    ReasoningChunk("", "redacted:c2VjcmV0", block=1),
    TextChunk("Gr\u00fc", block=2),
    TextChunk("\u00dfe, ", block=2),
    TextChunk("I look.", block=2),
    ToolCallChunk(0, "", id="toolu_1", name="ls"),
    ToolCallChunk(0, '{"pa'),
    ToolCallChunk(0, 'th": "a/\u00fc"}'),
    ReasoningChunk("", "WndlaXRl", block=4),
    ToolCallChunk(1, "", id="toolu_2", name="view"),
    ToolCallChunk(1, '{"file": "b"}'),
    UsageChunk(Usage(127, 42, 100, 20)),
    FinishChunk("tool_use"),
]


def test_thoughts_texts_calls_and_usage_come_apart() -> None:
    """Otherwise thoughts would be shown as the answer, calls get wrong arguments, or cached tokens not be counted."""
    assert read(EVERYTHING) == WHOLE


def test_cut_in_two_at_any_byte_it_is_the_same_answer() -> None:
    """Otherwise what a model says would depend on how the network cuts its packets."""
    for cut in range(1, len(EVERYTHING)):
        assert read(EVERYTHING[:cut], EVERYTHING[cut:]) == WHOLE, f"cut at byte {cut}"


@pytest.mark.parametrize("length", [1, 2, 3, 7, 64, 1_000])
def test_in_pieces_of_any_length_it_is_the_same_answer(length: int) -> None:
    """Otherwise a slow connection would lose words."""
    pieces = [EVERYTHING[at : at + length] for at in range(0, len(EVERYTHING), length)]
    assert read(*pieces) == WHOLE


def test_broken_off_at_any_event_it_is_an_error() -> None:
    """Otherwise half an answer would pass for a whole one, and its calls be run."""
    ends = [at for at in range(len(EVERYTHING)) if EVERYTHING[:at].endswith(b"\n\n")]
    for end in ends[:-1]:
        with pytest.raises(ModelError, match="in the middle") as caught:
            read(EVERYTHING[:end])
        assert caught.value.retryable


def test_a_stop_reason_without_a_last_event_is_an_end() -> None:
    """Otherwise servers that leave the last event away would seem to break off every time."""
    whole = start() + text_block(0, "All") + stop("end_turn", output_tokens=1)
    assert read(whole.removesuffix(event("message_stop")))[-1] == FinishChunk("end_turn")


@pytest.mark.parametrize(
    ("said", "ours"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "content_filter"),
        ("pause_turn", "unknown"),
        ("a_surprise", "unknown"),
    ],
)
def test_stop_reasons_are_ours(said: str, ours: str) -> None:
    """Otherwise a cut-off or refused answer would look like a finished one."""
    assert read(start() + text_block(0, "x") + stop(said))[-1] == FinishChunk(ours)


def test_a_window_that_is_full_before_a_word_is_an_overflow() -> None:
    """Otherwise the run would end with an empty answer where a summary would have helped."""
    with pytest.raises(ModelError) as caught:
        read(start() + stop("model_context_window_exceeded"))
    assert caught.value.kind == "overflow"


def test_an_empty_answer_is_an_answer() -> None:
    """Otherwise a model that has nothing more to say would end its run as failed."""
    chunks = read(start(input_tokens=3) + stop("end_turn", output_tokens=2))
    assert chunks == [UsageChunk(Usage(3, 2)), FinishChunk("end_turn")]


def test_the_last_word_about_usage_counts() -> None:
    """Otherwise tokens would be counted twice: each event tells the total so far."""
    usage = {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 5}
    chunks = read(start(input_tokens=3, cache_creation_input_tokens=1) + stop("end_turn", **usage))
    assert chunks[0] == UsageChunk(Usage(14, 5, 4, 1))


NEW_KINDS = [
    event("a_new_event", delta={"type": "x"}),
    event("ping"),
    block(7, {"type": "server_tool_use", "id": "s", "name": "x"}, {"type": "input_json_delta", "partial_json": "{"}),
    event("content_block_delta", index=0, delta={"type": "citations_delta", "citation": {}}),
]


@pytest.mark.parametrize("new", NEW_KINDS, ids=["event", "ping", "block", "piece"])
def test_what_is_new_to_us_is_passed_over(new: bytes) -> None:
    """Otherwise every addition to the API, which is announced to have some, would break each run."""
    assert text_of(read(start() + new + text_block(0, "All") + new + stop("end_turn"))) == "All"


@pytest.mark.parametrize(
    "broken",
    [
        b"data: {nonsense\n\n",
        b"data: 5\n\n",
        b"data: \xff\n\n",
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": 5}),
        event("content_block_start", index=0, content_block={"type": "text", "text": []}),
        event("content_block_start", index=0),
    ],
)
def test_nonsense_is_an_error_that_names_the_provider(broken: bytes) -> None:
    """Otherwise people would see a decoder's exception, or a part of an answer be lost silently."""
    with pytest.raises(ModelError, match="claude sent something") as caught:
        read(start() + broken + stop("end_turn"))
    assert caught.value.retryable


def test_a_whole_answer_instead_of_a_stream_is_taken() -> None:
    """Otherwise servers that ignore `stream` could not be used at all."""
    content = [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "."}}]
    usage = {"input_tokens": 1, "output_tokens": 2}
    whole = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}
    chunks = read(b"data: " + msgspec.json.encode(whole) + b"\n\ndata: [DONE]\n\n")
    assert (text_of(chunks), calls_of(chunks)) == ("Hi", [("c", "ls", '{"path":"."}')])
    assert chunks[-2:] == [UsageChunk(Usage(1, 2)), FinishChunk("tool_use")]


def test_arguments_that_come_whole_are_taken() -> None:
    """Otherwise servers that do not cut arguments up would call every tool without any."""
    begun = {"type": "tool_use", "id": "c", "name": "ls", "input": {"path": "."}}
    assert calls_of(read(start() + block(0, begun) + stop("tool_use"))) == [("c", "ls", '{"path":"."}')]


def test_a_call_without_arguments_has_none() -> None:
    """Otherwise a tool that takes none would be told of a mistake."""
    assert calls_of(read(start() + call_block(0, "c", "now") + stop("tool_use"))) == [("c", "now", "")]


def test_arguments_that_are_no_json_are_passed_on_as_they_are() -> None:
    """Otherwise the model could not be told what is wrong with its call: whoever runs the tool says it."""
    assert calls_of(read(start() + call_block(0, "c", "ls", "{oh", " no") + stop("tool_use")))[0][2] == "{oh no"


def test_pieces_of_two_calls_in_turn_go_to_their_own() -> None:
    """Otherwise one call would get the other's arguments."""

    def piece(index: int, text: str) -> bytes:
        return event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": text})

    def begun(index: int, id: str) -> bytes:
        tool: dict[str, Any] = {"type": "tool_use", "id": id, "name": "ls", "input": {}}
        return event("content_block_start", index=index, content_block=tool)

    packets = [start(), begun(1, "a"), begun(2, "b"), piece(2, "{2"), piece(1, "{1"), piece(2, "}"), piece(1, "}")]
    assert calls_of(read(*packets, stop("tool_use"))) == [("a", "ls", "{1}"), ("b", "ls", "{2}")]


def test_more_calls_than_the_limit_are_refused() -> None:
    """Otherwise a malfunctioning model could start thousands of tools (A32)."""
    calls = [call_block(number, f"c{number}", "ls") for number in range(limits.TOOL_CALLS_PER_STEP + 1)]
    with pytest.raises(ModelError, match="tool calls at once"):
        read(start(), *calls, stop("tool_use"))


@pytest.mark.parametrize(
    ("type", "kind", "retryable"),
    [
        ("overloaded_error", "broken", True),
        ("api_error", "broken", True),
        ("timeout_error", "broken", True),
        ("rate_limit_error", "limit", True),
        ("invalid_request_error", "refused", False),
        ("authentication_error", "auth", False),
        ("billing_error", "limit", False),
    ],
)
def test_an_error_in_the_middle_says_whether_another_try_helps(type: str, kind: str, retryable: bool) -> None:
    """Otherwise a hiccup would end a long run, or a refusal be asked for five times."""
    error = event("error", error={"type": type, "message": "It said no to canary-key."})
    with pytest.raises(ModelError, match="said no") as caught:
        read(start() + text_block(0, "Half") + error)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert "canary" not in caught.value.message


def test_an_overflow_in_the_middle_is_called_that() -> None:
    """Otherwise the run would fail where a summary of it would have helped."""
    error = event(
        "error", error={"type": "invalid_request_error", "message": "prompt is too long: 5 tokens > 4 maximum"}
    )
    with pytest.raises(ModelError) as caught:
        read(start() + error)
    assert caught.value.kind == "overflow"


def test_hidden_thoughts_have_a_signature_and_no_words() -> None:
    """Otherwise people would be shown ciphers."""
    chunks = read(EVERYTHING)
    assert reasoning_of(chunks) == "Let me look. \U0001f914"
