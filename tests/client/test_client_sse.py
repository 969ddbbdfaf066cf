"""The parser of server-sent events: whatever way the bytes are cut, the same events come out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.client.errors import ProtocolError
from windlass.client.sse import ServerSentEvent, SseParser

WIRE = (
    ': hb\n\nretry: 1000\r\n\r\nid: e.1\r\ndata: {"a": "ä€😀"}\r\n\r\n'
    "data: no id\rdata:second line\r\revent: other\nid: e.2\ndata:\n\nunknown: x\ndata: last\n\n"
).encode()
EVENTS = [
    ServerSentEvent('{"a": "ä€😀"}', "e.1"),
    ServerSentEvent("no id\nsecond line"),
    ServerSentEvent("", "e.2", "other"),
    ServerSentEvent("last"),
]


@given(st.lists(st.integers(0, len(WIRE)), max_size=12))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    """Else a client would lose or split events whenever the network cuts in the middle of a character or CR LF."""
    parser = SseParser()
    places = [0, *sorted(cuts), len(WIRE)]
    events = [event for start, end in itertools.pairwise(places) for event in parser.feed(WIRE[start:end])]
    assert events == EVENTS


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    """The worst cut there is, at every place at once."""
    parser = SseParser()
    assert [event for byte in WIRE for event in parser.feed(bytes([byte]))] == EVENTS


def test_an_event_without_an_id_does_not_inherit_the_last_one() -> None:
    """Else a delta would be taken for a repeat of the fact before it and be dropped."""
    parser = SseParser()
    assert [event.id for event in parser.feed(b"id: e.1\ndata: a\n\ndata: b\n\n")] == ["e.1", None]


def test_a_line_that_never_ends_is_refused_at_the_bound() -> None:
    """Else one broken server could fill a client's memory."""
    parser = SseParser(event_bytes=100)
    parser.feed(b"data: " + b"x" * 50)
    with pytest.raises(ProtocolError, match="larger than 100"):
        parser.feed(b"x" * 60)


def test_many_lines_of_one_event_are_refused_at_the_bound() -> None:
    """The bound is on the event, not on a line of it."""
    parser = SseParser(event_bytes=100)
    with pytest.raises(ProtocolError, match="larger than 100"):
        parser.feed(b"data: 0123456789\n" * 11)


def test_the_bound_is_for_one_event_and_not_for_the_stream() -> None:
    """Else a long stream would end by itself."""
    parser = SseParser(event_bytes=100)
    assert len(parser.feed(b"data: 0123456789\n\n" * 100)) == 100


def test_what_is_not_utf8_is_said_to_be_no_windlass_server() -> None:
    """Else a wrong address would end in a stack trace."""
    with pytest.raises(ProtocolError, match="not UTF-8"):
        SseParser().feed(b"data: \xff\n\n")
