"""How much a model of Anthropic may think, in the words that its generation understands.

Up to Claude 4.5 a request gives a budget of tokens; since 4.6 the model decides by itself (`adaptive`) and is told how
hard to try; newer ones refuse a budget. A Claude that is not in the table is taken for a new one. Other models, behind
servers that imitate this wire, get a budget: it is what they know.
"""

import re
from typing import Any

from windlass.wire.model import ModelError

# claude-3-7-sonnet-20250219, claude-sonnet-4-20250514, claude-opus-4-1, claude-haiku-4-5-20251001, ...
_OLD_CLAUDE = re.compile(
    r"claude-(?:[123]\b|instant|4-(?:opus|sonnet)|(?:opus|sonnet|haiku)-(?:3|4(?![-.][6-9]\b)(?![-.]\d\d\b))\b)"
)
_LEAST_BUDGET_TOKENS = 1_024  # fewer are refused
# At most so many tokens, and at most this part of the whole answer: something must be left to say and do.
_BUDGETS = {
    "minimal": (1_024, 0.25),
    "low": (4_096, 0.25),
    "medium": (12_288, 0.5),
    "high": (32_768, 0.75),
    "xhigh": (32_768, 0.75),
    "max": (32_768, 0.75),
}


def thinking(model: str, effort: str, max_tokens: int, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The fields of a request that ask for this effort; none when no effort is set. `messages` as they are sent.

    Nothing is sent beside them that thinking forbids: no temperature, no forced tool.
    """
    if effort in ("", "none"):
        return {}
    if not _takes_a_budget(model):
        # Without `display` newer models send their thoughts back empty, and people see nothing for minutes.
        shown = {"type": "adaptive", "display": "summarized"}
        return {"thinking": shown, "output_config": {"effort": "low" if effort == "minimal" else effort}}
    if effort not in _BUDGETS:
        raise ModelError(
            f"reasoning_effort is {effort!r}; {model} takes one of: {', '.join(_BUDGETS)}.", kind="refused"
        )
    most, part = _BUDGETS[effort]
    budget = max(_LEAST_BUDGET_TOKENS, min(most, int(max_tokens * part)))
    if budget >= max_tokens or not _turn_began_with_thoughts(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _takes_a_budget(model: str) -> bool:
    name = model.lower()
    return "claude" not in name or _OLD_CLAUDE.search(name) is not None


def _turn_began_with_thoughts(messages: list[dict[str, Any]]) -> bool:
    """Whether a turn that is going on (its newest results are ours to give) began with thoughts, or none is going on.

    With a budget, one that did not is refused: it was begun by another model, or without thinking.
    """
    first: dict[str, Any] | None = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message
        elif message["content"][0]["type"] != "tool_result":
            break
    return first is None or first["content"][0]["type"] in ("thinking", "redacted_thinking")
