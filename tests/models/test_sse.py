"""The event decoder: bytes cut anywhere, events whole."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.models.sse import EventDecoder, LineTooLong

WIRE = (
    ": a comment\r\n\r\n"
    'data: {"text": "gr\u00fc\u00df dich \U0001f600"}\r\n\r\n'
    "event: other\nid: 7\ndata:first\ndata: second\n\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = ['{"text": "gr\u00fc\u00df dich \U0001f600"}'.encode(), b"first\nsecond", b"[DONE]"]


@given(st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_events_are_the_same_wherever_the_network_cuts(cuts: list[int]) -> None:
    """Otherwise an answer would lose words, or a character, depending on the size of a packet."""
    decoder, borders = EventDecoder(1000), [0, *sorted(cuts), len(WIRE)]
    events: list[bytes] = []
    for start, end in itertools.pairwise(borders):
        events += decoder.feed(WIRE[start:end])
    assert events == EVENTS


def test_an_event_without_its_empty_line_counts_when_the_sender_closes() -> None:
    """Otherwise servers that leave the last newline away would seem to have broken off."""
    decoder = EventDecoder(1000)
    decoder.feed(b"data: [DONE]")
    assert decoder.finish() == [b"[DONE]"]


def test_an_error_field_is_taken_for_data() -> None:
    """Otherwise the reason of some local servers would be skipped and the user told of a broken connection."""
    assert EventDecoder(1000).feed(b'error: {"code": 500}\n\n') == [b'{"code": 500}']


def test_a_line_beyond_the_limit_is_refused() -> None:
    """Otherwise a broken provider could fill the server's memory with one line."""
    decoder = EventDecoder(100)
    with pytest.raises(LineTooLong):
        for _ in range(20):
            decoder.feed(b"data: xxxx")


def test_many_data_lines_of_one_event_are_bounded_too() -> None:
    """Otherwise the limit on a line could be passed by sending many short ones."""
    decoder = EventDecoder(100)
    with pytest.raises(LineTooLong):
        for _ in range(50):
            decoder.feed(b"data: xxxx\n")


@pytest.mark.parametrize(
    ("packet", "events"),
    [
        (b"event: a_name\ndata: one\n\n", [b"one"]),
        (b"event: a_name\ndata: one\nid: 7\n\n", [b"one"]),
        (b"event: a_name\ndata: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"event: a\ndata: one\n\nevent: b\ndata: two\n\n", [b"one", b"two"]),
        (b"event: a\ndata: say data: twice\n\n", [b"say data: twice"]),
        (b"event: a\r\ndata: one\r\n\r\n", [b"one"]),
        (b"event: a\n\n", []),
        (b"event: a\ndata:\n\n", [b""]),
    ],
)
def test_an_event_with_a_name_is_its_data(packet: bytes, events: list[bytes]) -> None:
    """Otherwise the short way for packets of one event would read them differently from the long one."""
    assert EventDecoder(1000).feed(packet) == events
    byte_by_byte = EventDecoder(1000)
    assert [event for at in range(len(packet)) for event in byte_by_byte.feed(packet[at : at + 1])] == events
