"""The terms of a prompt: rules and a cost limit that hold for its run alone, looked at before it is accepted."""

import math

from windlass import limits
from windlass.config import is_rule
from windlass.errors import Invalid
from windlass.wire.http import Prompt


def check_terms(prompt: Prompt) -> None:
    """Raise Invalid, naming the field, for terms that cannot be kept."""
    if not (math.isfinite(prompt.max_cost) and 0 <= prompt.max_cost <= limits.USAGE_COST):
        raise Invalid(f"max_cost must be a number from 0 (no limit of its own) to {limits.USAGE_COST:g}.")
    if len(prompt.allow) > limits.RUN_RULES:
        raise Invalid(f"allow has {len(prompt.allow)} rules; at most {limits.RUN_RULES} come with a prompt.")
    for index, pattern in enumerate(prompt.allow):
        if not is_rule(pattern):
            raise Invalid(
                f'allow[{index}] is no rule; write "tool" or "tool:argument", at most {limits.PATTERN_CHARACTERS} '
                "characters, on one line."
            )
    if prompt.on_busy == "steer" and (prompt.max_cost or prompt.allow):
        # Folded into a run, they would either widen what its own sender allowed, or be dropped without a word.
        raise Invalid(
            'on_busy "steer" does not go with max_cost or allow: they are for a run of the prompt\'s own, and a '
            "steered prompt becomes part of another. Leave them away, or send it with on_busy enqueue."
        )
