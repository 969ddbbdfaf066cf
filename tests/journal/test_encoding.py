"""Events as bytes: what every client in every language parses."""

import msgspec
import pytest

from windlass.journal.encoding import fact_event, plain_event, rfc3339
from windlass.journal.records import FactRow

ROW = FactRow("w1", 7, 1.5, b'{"name":"ann"}', "s1", "r1", "session", "updated", "s1", b'{"id":"s1"}', b"secret")


def test_a_fact_is_an_event_with_an_id_and_without_its_private_half() -> None:
    """Clients could not resume, or would be sent what is nobody's business (B40)."""
    assert fact_event("e1", ROW) == (
        b"id: e1.7\n"
        b'data: {"type":"session","payload":{"type":"updated","payload":{"id":"s1"}},'
        b'"by":{"name":"ann"},"time":"1970-01-01T00:00:01.500Z"}\n\n'
    )


@pytest.mark.parametrize("payload", [{"n": 1}, b'{"n":1}'], ids=["object", "bytes"])
def test_what_is_no_fact_has_no_id(payload: object) -> None:
    """A client would come back to a place that is not in the log (B41)."""
    expected = b'data: {"type":"presence","payload":{"type":"updated","payload":{"n":1}}}\n\n'
    assert plain_event("presence", "updated", payload) == expected


def test_text_with_line_breaks_stays_on_one_line() -> None:
    """Words of a model could end an event and begin a forged one (A41)."""
    event = plain_event("note", "created", {"text": "one\n\ndata: two\r"})
    assert event.count(b"\n") == 2 and b"\r" not in event
    assert msgspec.json.decode(event[6:])["payload"]["payload"]["text"] == "one\n\ndata: two\r"


def test_times_have_milliseconds_and_say_that_they_are_utc() -> None:
    """A client would take them for its own time zone."""
    assert rfc3339(0) == b"1970-01-01T00:00:00.000Z"
