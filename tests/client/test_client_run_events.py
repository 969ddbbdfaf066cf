"""Which events are a run's own, and what of its text is new: decided without a connection."""

from typing import Any

import msgspec
from fake_windlass import a_message, a_permission, a_run, finish, text

from windlass.client import EventId, Run, StreamEvent
from windlass.client.answer_text import AnswerText
from windlass.client.run_events import OwnEvents


def fact(seq: int, kind: str, payload: dict[str, Any], change: str = "created") -> StreamEvent:
    return StreamEvent(kind, change, payload, EventId("e", seq))


def live(kind: str, payload: dict[str, Any]) -> StreamEvent:
    return StreamEvent(kind, "updated", payload)


def hello(head: int, floor: int = 0, *runs: dict[str, Any]) -> StreamEvent:
    return live("hello", {"epoch": "e", "head": head, "floor": floor, "runs": list(runs)})


def delta(at: int, words: str, part: int = 0, message_id: str = "m1") -> StreamEvent:
    place = {"message_id": message_id, "session_id": "ses_1", "part": part, "field": "text"}
    return live("message_delta", {**place, "at": at, "text": words, "type": "text"})


def run_fact(seq: int, run_id: str, state: str, *message_ids: str) -> StreamEvent:
    return fact(seq, "run", {**a_run(run_id, state=state), "message_ids": list(message_ids)})


def test_the_messages_of_a_run_cancelled_before_it_began_are_its_own_and_no_other_are() -> None:
    """B04: they come before the fact that lists them, among those of other runs that were cancelled with it."""
    own = OwnEvents("run_2", "ses_1")
    others = fact(1, "message", a_message("m1", [finish("canceled")]))
    mine = fact(4, "message", a_message("m2", [finish("canceled")]))
    assert own.take(hello(0)) == own.take(others) == []
    assert own.take(run_fact(2, "run_1", "canceled", "m1")) == []
    assert own.take(mine) == []
    ending = run_fact(5, "run_2", "canceled", "m2")
    assert own.take(ending) == [mine, ending]
    assert not own.take(fact(6, "message", a_message("m3", [finish()])))


def test_what_a_sub_agent_asks_is_not_its_parents_own() -> None:
    """A program that answers for one run would answer for others."""
    own = OwnEvents("run_1", "ses_1")
    own.take(run_fact(1, "run_1", "running"))
    child = fact(2, "permission_request", {**a_permission("perm_1", "ses_2"), "run_id": "run_9"})
    mine = fact(3, "permission_request", {**a_permission("perm_2"), "run_id": "run_1"})
    assert (own.take(child), own.take(mine)) == ([], [mine])


def test_a_run_whose_end_was_trimmed_is_over_at_the_end_of_what_is_left() -> None:
    """B41: `run_complete` comes once; a loop that waits for it would never end."""
    known = msgspec.convert({**a_run("run_1", state="completed"), "message_ids": ["m1"]}, Run)
    own = OwnEvents("run_1", "ses_1", known)
    own.take(hello(11, 9))
    left = fact(10, "message", a_message("m1", [text("Bye"), finish()]))
    assert own.take(left) == [left] and not own.over
    own.take(fact(11, "session", {"id": "ses_1"}))
    assert own.over


def test_a_run_that_is_over_with_nothing_to_replay_is_over_at_once() -> None:
    """No event would come that ends the loop."""
    own = OwnEvents("run_1", "ses_1")
    own.take(hello(11, 11))
    assert own.over


def test_a_run_that_is_going_on_is_not_over_at_the_head() -> None:
    """The loop would end in the middle of the answer."""
    own = OwnEvents("run_1", "ses_1")
    own.take(hello(1, 0, a_run("run_1", state="running")))
    own.take(run_fact(1, "run_1", "running"))
    assert not own.over
    own.take(fact(2, "run_complete", {"run_id": "run_1", "session_id": "ses_1"}))
    assert own.over


def test_text_is_said_once_whatever_comes_twice() -> None:
    """B43 I16: after a reconnect the whole message comes again, and old states of it are replayed."""
    answer = AnswerText("ses_1")
    said = [
        answer.take(event)
        for event in (
            fact(1, "message", a_message("m1", [])),
            delta(0, "One "),
            live("message", a_message("m1", [text("One two ")])),
            fact(1, "message", a_message("m1", [text("One ")])),
            delta(8, "three"),
            fact(2, "message", a_message("m1", [text("One two three."), finish()])),
            fact(3, "message", a_message("m2", [text("Next."), finish()])),
        )
    ]
    assert said == ["", "One ", "two ", "", "", "three.", "\n\nNext."]


def test_an_answer_that_was_begun_anew_follows_whole() -> None:
    """Its second half would be glued to another first half."""
    answer = AnswerText("ses_1")
    answer.take(fact(1, "message", a_message("m1", [])))
    assert answer.take(delta(0, "Wrong way")) == "Wrong way"
    assert answer.take(fact(2, "message", a_message("m1", [text("Right."), finish()]))) == "\nRight."


def test_what_people_and_tools_say_is_not_the_answer() -> None:
    """A chat would repeat one's own words."""
    answer = AnswerText("ses_1")
    assert answer.take(fact(1, "message", a_message("m1", [text("Hello")], role="user"))) == ""
