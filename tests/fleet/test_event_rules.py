"""What a worker's events may say: pure rules, so each is a line."""

import math

import pytest

from tests.fleet.recorder import World
from windlass import limits
from windlass.fleet.parent.event_rules import EventRules
from windlass.fleet.parent.link_errors import ProtocolError
from windlass.wire.messages import Text, TextData
from windlass.wire.run_events import MessageStart, PartAdded, SteerTaken, UsageGained
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
