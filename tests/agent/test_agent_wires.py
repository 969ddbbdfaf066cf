"""Whatever is on disk, each provider accepts what is sent, and finds the beginning of it in its cache (I7)."""

from collections.abc import Callable
from typing import Any

import pytest
from agent_recorders import message
from hypothesis import example, given
from stored_conversations import conversations
from wires import WIRES

from windlass.agent.history import conversation
from windlass.wire.messages import Finish, FinishData, Message, ShellCommand, ShellCommandData, ToolCall, ToolCallData


@pytest.mark.parametrize(("encode", "check"), WIRES)
@given(stored=conversations)
@example(stored=[message("assistant", Finish(FinishData("canceled", 0))), message("user", "two")])
@example(stored=[message("user", "x"), message("assistant", ToolCall(ToolCallData("a", "ls", "{}")), "and then")])
@example(stored=[message("assistant", ShellCommand(ShellCommandData("ls", "", 0)))])
def test_whatever_is_stored_each_wire_accepts_it(
    encode: Callable[[list[Message]], Any], check: Callable[[Any], None], stored: list[Message]
) -> None:
    """Otherwise a session that was cut at a bad moment, or began with another provider, could not go on (I7)."""
    check(encode(conversation([*stored, message("user", "go on")])))


@pytest.mark.parametrize(("encode", "check"), WIRES)
@given(stored=conversations)
def test_a_run_cut_anywhere_is_accepted_without_another_prompt(
    encode: Callable[[list[Message]], Any], check: Callable[[Any], None], stored: list[Message]
) -> None:
    """Otherwise a step that follows tools, and not a prompt, could be refused (I7)."""
    check(encode(conversation(stored, images=False)))
