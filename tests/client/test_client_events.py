"""Events of the stream as types: what a program matches on, and what it is spared."""

from typing import get_args

from fake_windlass import a_message, a_permission, a_run, finish, text

from windlass.client import By, Decoded, Message, PermissionRequest, Run, RunComplete, StreamEvent
from windlass.client.events import _SHAPES
from windlass.wire.events import FactKind


def event(kind: str, payload: dict[str, object], change: str = "created") -> StreamEvent:
    return StreamEvent(kind, change, payload, by=By("tester"))


def test_an_event_is_decoded_as_the_type_of_its_kind() -> None:
    """A program would dig in dictionaries, and a type checker could not help it."""
    message = event("message", a_message("m1", [text("Hello"), finish()])).decoded
    assert isinstance(message, Message) and (message.text, message.is_open) == ("Hello", False)
    run = event("run", a_run("run_1", state="failed")).decoded
    assert isinstance(run, Run) and run.is_terminal
    assert isinstance(event("permission_request", a_permission("perm_1")).decoded, PermissionRequest)
    complete = event("run_complete", {"session_id": "s", "run_id": "r", "message_id": "m", "text": "Yes."}).decoded
    assert isinstance(complete, RunComplete) and complete.text == "Yes."


def test_every_kind_that_is_sent_has_a_type() -> None:
    """A kind that is added to the wire would be None for every program that matches on types."""
    later = {"lsp_event", "skills_event"}  # named by the wire, sent by nobody yet
    assert set(get_args(FactKind)) - later <= set(_SHAPES)
    assert {"hello", "message_delta", "presence", "reset"} <= set(_SHAPES)
    assert set(_SHAPES.values()) == set(get_args(Decoded))


def test_what_is_not_understood_is_none_and_breaks_nothing() -> None:
    """A client of this version would end when the server is newer."""
    assert event("a_later_kind", {"id": "x"}).decoded is None
    assert event("run", {"id": "run_1", "state": "a_later_state"}).decoded is None
    assert event("session", {"id": "ses_1"}, "deleted").decoded is None
