"""A message while it is written: what was said so far, and how much of it was shown."""

from typing import Any

import msgspec
import pytest

from tests.journal.facts import message_fact
from windlass.journal.live import LiveMessage, new_part
from windlass.wire.messages import Message, Reasoning, ReasoningData, Text, TextData, ToolCall, ToolCallData


def message(*parts: Any) -> Message:
    body: Message = message_fact().body
    return msgspec.structs.replace(body, parts=list(parts))


def parts(found: Message) -> list[Any]:
    return [msgspec.to_builtins(part)["data"] for part in found.parts]


@pytest.mark.parametrize(("part_type", "field"), [("text", "text"), ("reasoning", "thinking"), ("tool_call", "input")])
def test_each_part_grows_in_its_own_field(part_type: str, field: str) -> None:
    """Thinking would be shown as the answer, or a tool be called with no arguments (B43)."""
    live = LiveMessage(message())
    assert live.ensure_part(0, part_type, "call-1", "edit")
    live.add(0, "one ")
    live.add(0, "two")
    live.publish(0, 4)
    assert (parts(live.published())[0][field], parts(live.staged())[0][field]) == ("one ", "one two")
    assert (live.part_type(0), live.size) == (part_type, 7)


def test_a_tool_call_has_its_name_from_the_start() -> None:
    """People would watch the arguments of a call without knowing of what."""
    live = LiveMessage(message())
    live.ensure_part(0, "tool_call", "call-1", "edit")
    assert parts(live.staged()) == [{"id": "call-1", "name": "edit", "input": ""}]


def test_parts_that_came_with_the_fact_keep_growing_where_they_are() -> None:
    """A message that is continued would begin again, or lose what it had (I16)."""
    thinking = Reasoning(ReasoningData("because ", "sig", 1, 2))
    call = ToolCall(ToolCallData("call-1", "edit", '{"a"', finished=True))
    live = LiveMessage(message(Text(TextData("so ")), thinking, call))
    assert [live.ensure_part(index, "") for index in range(3)] == [False, False, False]
    assert live.size == len("so ") + len("because ") + len('{"a"')
    for index, text in enumerate(("far", "I can", ":1}")):
        live.add(index, text)
        assert live.publish(index, len(text)) == len(("so ", "because ", '{"a"')[index])
    assert (
        parts(live.published())
        == parts(live.staged())
        == [
            {"text": "so far"},
            {"thinking": "because I can", "signature": "sig", "started_at": 1, "finished_at": 2},
            {"id": "call-1", "name": "edit", "input": '{"a":1}', "finished": True},
        ]
    )


def test_a_part_that_was_not_shown_yet_is_in_no_published_message() -> None:
    """Readers would be shown an empty part whose first words are behind a fact that is not on disk (I12)."""
    live = LiveMessage(message(Text(TextData("shown"))))
    live.ensure_part(1, "text")
    live.add(1, "not yet")
    assert parts(live.published()) == [{"text": "shown"}]
    live.publish(1, 3)
    live.publish(0, 0)
    assert parts(live.published()) == [{"text": "shown"}, {"text": "not"}]


def test_offsets_go_on_from_what_was_shown() -> None:
    """A client would see a hole or a repeat in the text (B43)."""
    live = LiveMessage(message(Text(TextData("abc"))))
    live.add(0, "defg")
    assert [live.publish(0, 2), live.publish(0, 2)] == [3, 5]


@pytest.mark.parametrize("part_type", ["finish", "binary", ""])
def test_only_text_is_streamed(part_type: str) -> None:
    """A result would be put together from pieces that nobody checked."""
    with pytest.raises(ValueError, match="cannot be streamed"):
        new_part(part_type, "", "")


def test_a_part_that_came_whole_cannot_grow() -> None:
    """Words would vanish into a part that has no place for them."""
    live = LiveMessage(message_fact("m1", "over", done=True).body)
    assert not live.ensure_part(0, "text")
    with pytest.raises(ValueError, match=r"part 1 is of type 'finish'"):
        live.ensure_part(1, "text")
    assert parts(live.staged()) == parts(live.published()) == [{"text": "over"}, {"reason": "end_turn", "time": 1}]


def test_a_signature_that_comes_in_pieces_is_put_together() -> None:
    """The provider would refuse the history that holds half of it."""
    live = LiveMessage(message())
    live.ensure_part(0, "reasoning")
    live.sign(0, "c2l")
    live.sign(0, "n")
    assert parts(live.staged())[0]["signature"] == "c2ln"


@pytest.mark.parametrize("index", [0, 1])
def test_only_reasoning_can_be_signed(index: int) -> None:
    """A signature would be lost without anyone being told."""
    live = LiveMessage(message(Text(TextData("words"))))
    with pytest.raises(ValueError, match=f"part {index} is no reasoning"):
        live.sign(index, "c2ln")


def test_a_version_is_encoded_once_and_a_newer_one_again() -> None:
    """Each of a thousand readers would cost its own encoding, or all would be sent an old text."""
    live = LiveMessage(message())
    live.ensure_part(0, "text")
    live.add(0, "one two")
    live.publish(0, 3)
    first = live.encoded()
    assert first is live.encoded() and b'"one"' in first
    assert first.startswith(b'data: {"type":"message","payload":{"type":"updated","payload":{"id":"m1"')
    live.publish(0, 4)
    assert b'"one two"' in live.encoded()


def test_a_message_that_started_again_has_another_stamp() -> None:
    """A reader would take the second attempt for what it already has (B43)."""
    first, second = LiveMessage(message()), LiveMessage(message())
    assert first.version == second.version and first.stamp != second.stamp
    before = first.stamp
    first.ensure_part(0, "text")
    first.publish(0, 0)
    assert first.stamp != before
