"""What a worker's events may say: pure rules, so each is a line."""

import math

import pytest

from tests.fleet.recorder import World
from windlass import limits
from windlass.fleet.parent.event_rules import EventRules
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.wire.messages import Text, TextData, ToolResult, ToolResultData
from windlass.wire.run_events import FileWritten, MessageStart, PartAdded, SteerTaken, ToolEnded, UsageGained
from windlass.wire.runs import Usage


def test_a_worker_cannot_write_a_persons_message_anew() -> None:
    """A31: what somebody said would be replaced by what an agent says he said."""
    rules = EventRules(World().spec)
    rules.hand("run_steered", "msg_of_a_person")
    rules.check(SteerTaken("run_steered"))
    with pytest.raises(ProtocolError, match="another message's"):
        rules.check(MessageStart("msg_of_a_person", "assistant"))


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1.0, 1e308])
def test_a_cost_beyond_all_measure_is_refused(cost: float) -> None:
    """I15: a sum of them is no number any more, and the session could not be read again."""
    with pytest.raises(ProtocolError, match="no amount"):
        EventRules(World().spec).check(UsageGained(Usage(), cost))


def test_a_message_that_grows_without_end_is_refused() -> None:
    """A38: it is written anew with each part, and at last the disk refuses it for everyone."""
    rules = EventRules(World().spec)
    rules.check(MessageStart("msg_a", "assistant"))
    part = PartAdded("msg_a", Text(TextData("x")))
    with pytest.raises(ProtocolError, match="over"):
        for _ in range(40):
            rules.check(part, limits.MIB)


RESULT = ToolResult(ToolResultData("call_1", "bash", "x", "", False))


def test_a_worker_cannot_end_a_result_that_it_did_not_begin() -> None:
    """A31: the result of another run's tool would be what this worker says it is."""
    rules = EventRules(World().spec)
    with pytest.raises(ProtocolError, match="did not start"):
        rules.check(ToolEnded("msg_of_another_run", RESULT))
    rules.check(MessageStart("msg_a", "tool"))
    rules.check(ToolEnded("msg_a", RESULT))


def test_a_result_counts_as_what_its_message_may_hold() -> None:
    """A38: results that are replaced again and again would be as many facts of megabytes."""
    rules = EventRules(World().spec)
    rules.check(MessageStart("msg_a", "tool"))
    with pytest.raises(ProtocolError, match="over"):
        for _ in range(40):
            rules.check(ToolEnded("msg_a", RESULT), limits.MIB)


@pytest.mark.parametrize("path", ["", "a.txt", "../a.txt", "/" + "a" * limits.PATH_CHARACTERS])
def test_a_file_is_named_by_a_path_that_means_one_thing(path: str) -> None:
    """A20: what is relative to a directory of the worker's would be undone in a directory of ours."""
    with pytest.raises(ProtocolError, match="path"):
        EventRules(World().spec).check(FileWritten(path, "x"))


def test_what_is_written_to_a_cache_is_an_amount_too() -> None:
    """I15: one figure that nobody looks at would spoil the sums."""
    with pytest.raises(ProtocolError, match="no amount"):
        EventRules(World().spec).check(UsageGained(Usage(cache_write_tokens=-1)))
