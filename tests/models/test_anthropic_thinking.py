"""How much a model may think, in the words of its generation."""

from typing import Any

import pytest
from model_requests import message, request

from windlass.models.anthropic_request import body
from windlass.models.anthropic_thinking import thinking
from windlass.wire.messages import ToolCall, ToolCallData, ToolResult, ToolResultData
from windlass.wire.model import ModelError

ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    "model",
    [
        "claude-3-7-sonnet-20250219",
        "claude-opus-4-20250514",
        "claude-4-opus-20250514",
        "claude-opus-4-0",
        "claude-opus-4-1-20250805",
        "claude-sonnet-4",
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-haiku-4-5-20251001",
        "claude-opus-4-5-20251101",
        "anthropic/claude-sonnet-4.5",
        "anthropic.claude-opus-4-1-20250805-v1:0",
        "some-model-behind-this-wire",
    ],
)
def test_older_models_are_given_a_budget(model: str) -> None:
    """Otherwise every request to them with an effort would be refused."""
    assert thinking(model, "high", 8_192, []) == {"thinking": {"type": "enabled", "budget_tokens": 6_144}}


@pytest.mark.parametrize(
    "model",
    [
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "anthropic/claude-opus-4.6",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-4-10",
        "claude-opus-5",
        "claude-haiku-5-5",
        "claude-sonnet-5-5",
        "claude-fable-5-2",
        "claude-mythos-preview",
        "claude-of-a-later-year",
    ],
)
def test_newer_models_decide_themselves_and_show_their_thoughts(model: str) -> None:
    """Otherwise every request to them with an effort would be refused, or people see nothing while they think."""
    assert thinking(model, "medium", 8_192, []) == {"thinking": ADAPTIVE, "output_config": {"effort": "medium"}}


@pytest.mark.parametrize("effort", ["", "none"])
def test_without_an_effort_nothing_is_asked_for(effort: str) -> None:
    """Otherwise models that cannot think at all would refuse."""
    assert thinking("claude-opus-5", effort, 8_192, []) == thinking("claude-3-haiku", effort, 8_192, []) == {}


@pytest.mark.parametrize(
    ("effort", "max_tokens", "budget"),
    [
        ("low", 8_192, 2_048),
        ("medium", 8_192, 4_096),
        ("high", 64_000, 32_768),
        ("low", 64_000, 4_096),
        ("low", 2_000, 1_024),
        ("max", 64_000, 32_768),
    ],
)
def test_a_budget_leaves_room_for_the_answer(effort: str, max_tokens: int, budget: int) -> None:
    """Otherwise it would be refused (it must be smaller than the answer), or the model think and then say nothing."""
    assert thinking("claude-sonnet-4-5", effort, max_tokens, [])["thinking"]["budget_tokens"] == budget


def test_an_answer_too_short_to_think_in_is_given_without_thoughts() -> None:
    """Otherwise a short answer, such as a title, would be refused: the smallest budget is 1,024 tokens."""
    assert thinking("claude-sonnet-4-5", "high", 1_000, []) == {}


def test_an_effort_that_is_none_is_said_to_be() -> None:
    """Otherwise a typo in the config would silently mean: do not think."""
    with pytest.raises(ModelError, match="reasoning_effort is 'hihg'") as caught:
        thinking("claude-sonnet-4-5", "hihg", 8_192, [])
    assert not caught.value.retryable


def turn(first: str) -> list[dict[str, Any]]:
    """A turn that is going on, whose first block is of this kind."""
    asked = {"role": "user", "content": [{"type": "text"}]}
    given = {"role": "user", "content": [{"type": "tool_result"}, {"type": "text"}]}
    called = {"role": "assistant", "content": [{"type": "tool_use"}]}
    return [asked, {"role": "assistant", "content": [{"type": first}, {"type": "tool_use"}]}, given, called, given]


@pytest.mark.parametrize(("first", "thinks"), [("thinking", True), ("redacted_thinking", True), ("text", False)])
def test_a_turn_begun_without_thoughts_is_ended_without(first: str, thinks: bool) -> None:
    """Otherwise a session that goes on from another model's open calls would be refused."""
    assert bool(thinking("claude-sonnet-4-5", "high", 8_192, turn(first))) is thinks


def test_newer_models_may_begin_to_think_at_any_step() -> None:
    """Otherwise switching the model in the middle would make it less clever than it was paid for."""
    assert thinking("claude-opus-5", "high", 8_192, turn("text"))["thinking"] == ADAPTIVE


def test_a_turn_that_is_over_does_not_count() -> None:
    """Otherwise one old answer without thoughts would keep a model from thinking for ever."""
    call = ToolCall(ToolCallData("c", "ls", "{}"))
    result = ToolResult(ToolResultData("c", "ls", "x", "", False))
    messages = [
        message("user", "go"),
        message("assistant", call),
        message("tool", result),
        message("assistant", "Done."),
        message("user", "more"),
    ]
    asked = request(messages=messages, model="claude-sonnet-4-5", reasoning_effort="low")
    assert "thinking" in body(asked, "claude")
