"""The live picture of a session: whole messages replace, deltas add, holes and repeats change nothing (I16)."""

import itertools
from typing import Any

import msgspec
from fake_windlass import a_message, finish, text
from hypothesis import given
from hypothesis import strategies as st

from windlass.client import Conversation, Gained, Message, Removed, Replaced, StreamEvent, ToolResult


def whole(parts: list[dict[str, Any]], change: str = "updated", session_id: str = "ses_1") -> StreamEvent:
    return StreamEvent("message", change, a_message("m1", parts, session_id=session_id))


def delta(at: int, words: str, part: int = 0, field: str = "text", **first: str) -> StreamEvent:
    place = {"message_id": "m1", "session_id": "ses_1", "part": part, "field": field, "at": at, "text": words}
    return StreamEvent("message_delta", "updated", {**place, **first})


def started() -> Conversation:
    conversation = Conversation("ses_1")
    conversation.apply(whole([], "created"))
    return conversation


def said(conversation: Conversation) -> str:
    message = conversation.message("m1")
    assert message is not None
    return message.text


def test_deltas_in_order_give_the_text() -> None:
    """B43: what streams is what was said."""
    conversation = started()
    conversation.apply(delta(0, "Hel", type="text"))
    assert conversation.apply(delta(3, "lo")) == Gained("m1", 0, "text", 3, "lo")
    assert said(conversation) == "Hello"


def test_a_repeated_delta_changes_nothing() -> None:
    """After a reconnect a delta may come twice; the text must not stutter."""
    conversation = started()
    conversation.apply(delta(0, "Hello", type="text"))
    assert conversation.apply(delta(0, "Hel")) is None
    assert said(conversation) == "Hello"


def test_the_new_end_of_an_overlapping_delta_is_taken() -> None:
    """Pieces may be cut differently for a client that joined in the middle."""
    conversation = started()
    conversation.apply(delta(0, "Hello", type="text"))
    conversation.apply(delta(3, "lo you"))
    assert said(conversation) == "Hello you"


def test_a_delta_behind_a_hole_is_ignored_until_the_whole_message_comes() -> None:
    """Text with a piece missing in the middle would be a lie."""
    conversation = started()
    conversation.apply(delta(0, "Hel", type="text"))
    assert conversation.apply(delta(9, "you")) is None
    assert conversation.apply(whole([text("Hello to you")])) is not None
    conversation.apply(delta(12, "!"))
    assert said(conversation) == "Hello to you!"


def test_a_delta_of_an_unknown_message_is_a_hole() -> None:
    """A client that attached in the middle waits for the whole message."""
    assert Conversation("ses_1").apply(delta(0, "Hello", type="text")) is None


def test_a_message_that_is_emptied_starts_again_from_nothing() -> None:
    """A provider retry: the second try's text must not be added to the first's."""
    conversation = started()
    conversation.apply(delta(0, "First try", type="text"))
    conversation.apply(whole([]))
    conversation.apply(delta(0, "Second", type="text"))
    assert said(conversation) == "Second"


def test_offsets_are_code_points() -> None:
    """A smiley is one, not two or four: else every text with one would have a hole."""
    conversation = started()
    conversation.apply(delta(0, "😀é", type="text"))
    conversation.apply(delta(2, "!"))
    assert said(conversation) == "😀é!"


def test_a_tool_call_grows_by_its_input() -> None:
    """So that a client can show a long file while it is being written."""
    conversation = started()
    conversation.apply(delta(0, "Let me look.", type="text"))
    conversation.apply(delta(0, '{"pa', 1, "input", type="tool_call", id="call_1", name="view"))
    conversation.apply(delta(4, 'th": "a"}', 1, "input"))
    message = conversation.message("m1")
    assert message is not None
    assert [(call.id, call.name, call.input) for call in message.tool_calls] == [("call_1", "view", '{"path": "a"}')]


def test_a_field_that_no_part_has_is_ignored() -> None:
    """A later version may stream something else; it must not break the rest."""
    conversation = started()
    conversation.apply(delta(0, "Hello", type="text"))
    assert conversation.apply(delta(0, "x", field="colour")) is None
    assert conversation.apply(delta(0, "x", part=-1)) is None


def test_another_sessions_message_is_not_taken() -> None:
    """A workspace's stream carries all its sessions."""
    conversation = Conversation("ses_1")
    assert conversation.apply(whole([text("Theirs")], session_id="ses_2")) is None
    assert conversation.messages == []


def test_a_message_with_a_part_of_a_later_version_does_not_break_the_picture() -> None:
    """Shapes only grow."""
    conversation = started()
    assert conversation.apply(whole([{"type": "hologram", "data": {}}])) is None


def test_a_deleted_message_is_gone() -> None:
    """What was removed for everyone must not stay on one screen."""
    conversation = started()
    assert conversation.apply(whole([], "deleted")) == Removed("m1")
    assert conversation.messages == []


def test_a_loaded_message_goes_on_growing() -> None:
    """REST has the text so far, the deltas go on from there (B19, B43)."""
    loaded = msgspec.convert(a_message("m1", [text("Hello")]), Message)
    conversation = Conversation("ses_1", [loaded])
    conversation.apply(delta(5, " you"))
    assert said(conversation) == "Hello you"


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=8), st.randoms(use_true_random=False))
def test_any_cut_with_repeats_gives_the_final_text(words: str, cuts: list[int], random: Any) -> None:
    """I16: applying the deltas in order, some of them twice, gives the text of the final fact."""
    conversation = started()
    places = sorted({0, len(words), *(cut for cut in cuts if cut < len(words))})
    deltas = [delta(a, words[a:b], type="text") for a, b in itertools.pairwise(places)]
    for index, event in enumerate(deltas):
        conversation.apply(event)
        if random.random() < 0.5:
            conversation.apply(deltas[random.randrange(index + 1)])
    assert said(conversation) == words
    assert isinstance(conversation.apply(whole([text(words), finish()])), Replaced)
    assert said(conversation) == words


def test_a_tools_output_grows_like_any_other_text_until_its_result_is_whole() -> None:
    """B43: people would look at nothing while a command works, or take half an output for all of it."""
    conversation = Conversation("ses_1")
    conversation.apply(StreamEvent("message", "created", a_message("m1", [], role="tool")))
    conversation.apply(delta(0, "one\n", field="content", type="tool_result", id="c1", name="bash"))
    assert conversation.apply(delta(4, "two\n", field="content")) == Gained("m1", 0, "content", 4, "two\n")
    message = conversation.message("m1")
    assert message is not None and message.is_open
    (part,) = message.parts
    assert isinstance(part, ToolResult)
    assert (part.data.tool_call_id, part.data.content, part.data.unfinished) == ("c1", "one\ntwo\n", True)
