"""What a run may use: time, tokens, money. Each limit ends the run with a reason that a person can act on."""

import math
from collections.abc import Callable

from windlass.agent.giving_up import GaveUp
from windlass.wire.runs import Usage


class Budget:
    """Counts what one run uses. A limit of 0 is none. `prompt_max_cost` is what the prompt said, beside the settings.

    `time` is a monotonic clock; `waited` says how long the run has waited for people, which is not counted.
    """

    def __init__(
        self,
        time: Callable[[], float],
        waited: Callable[[], float],
        *,
        max_seconds: float = 0.0,
        max_tokens: int = 0,
        max_cost: float = 0.0,
        prompt_max_cost: float = 0.0,
    ) -> None:
        self._time = time
        self._waited = waited
        self._max_seconds = max_seconds
        self._max_tokens = max_tokens
        # The smaller of the two, and which it is: whoever is told of the other one would raise it in vain.
        self._is_prompts = 0 < prompt_max_cost < (max_cost or math.inf)
        self._max_cost = prompt_max_cost if self._is_prompts else max_cost
        self._began_at = time()
        self._tokens = 0
        self._cost = 0.0

    def add(self, usage: Usage, cost: float) -> None:
        self._tokens += usage.prompt_tokens + usage.completion_tokens
        self._cost += cost

    def check(self) -> None:
        """Raise GaveUp when a limit is passed. Cheap: it is asked for every chunk of an answer."""
        if self._max_tokens and self._tokens > self._max_tokens:
            raise GaveUp(
                f"The run was stopped: it used {self._tokens:,} tokens, and may use {self._max_tokens:,}. "
                "Send another message to let it go on, or raise max_tokens under [agent] in the config."
            )
        if self._max_cost and self._cost > self._max_cost:
            raise GaveUp(
                f"The run was stopped: it cost {self._cost:.4g}, and may cost {self._max_cost:g}. "
                f"Send another message to let it go on, or raise {self._cost_limit}."
            )
        if (left := self.seconds_left()) is not None and left < 0:
            raise self.out_of_time()

    @property
    def _cost_limit(self) -> str:
        """Where the limit was set."""
        if self._is_prompts:
            return "the limit that came with the prompt (max_cost, or `windlass run --max-cost`)"
        return "max_cost under [agent] in the config"

    def seconds_left(self) -> float | None:
        """Until the run has to end; None: it need not. The time people took to answer is theirs: a permission given in
        the morning must not end the run."""
        if not self._max_seconds:
            return None
        return self._began_at + self._max_seconds + self._waited() - self._time()

    def out_of_time(self) -> GaveUp:
        return GaveUp(
            f"The run was stopped after {_in_words(self._max_seconds)} of work. "
            "Send another message to let it go on, or raise max_time under [agent] in the config."
        )


def _in_words(seconds: float) -> str:
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} seconds"
