"""How full the context window is: what the provider counted last, and an estimate of what came since."""

from collections.abc import Sequence

from windlass import limits
from windlass.agent.window import estimate
from windlass.wire.messages import Message


class Gauge:
    """Measures one run's conversation against `budget_tokens`, what may be sent in all; 0 means unknown.

    `fixed_tokens` is an estimate of what every request carries: the system prompt and the tools.
    """

    def __init__(self, budget_tokens: int, fixed_tokens: int) -> None:
        self.budget_tokens = budget_tokens
        self.fixed_tokens = fixed_tokens
        self._reported_tokens = 0
        self._reported_messages = 0
        self._counted_tokens = 0  # of the first `_counted_messages`: each is estimated once
        self._counted_messages = 0

    def count(self, messages: Sequence[Message], end: int) -> None:
        """Estimate the first `end` messages of the conversation, as far as that has not been done."""
        self._counted_tokens += sum(map(estimate, messages[self._counted_messages : end]))
        self._counted_messages = max(self._counted_messages, end)

    def report(self, prompt_tokens: int, messages: int) -> None:
        """The provider counted this many tokens for the first `messages` of the conversation, all of them sent."""
        self._reported_tokens, self._reported_messages = prompt_tokens, messages

    def forget(self) -> None:
        """The conversation is another one now. Until this is said it only grows."""
        self._reported_tokens = self._reported_messages = 0
        self._counted_tokens = self._counted_messages = 0

    def used(self, messages: Sequence[Message]) -> int:
        """About how many tokens a request with these messages is."""
        if self._reported_tokens:
            return self._reported_tokens + sum(map(estimate, messages[self._reported_messages :]))
        self.count(messages, len(messages))
        return self.fixed_tokens + self._counted_tokens

    def fits(self, messages: Sequence[Message], more_tokens: int = 0) -> bool:
        return not self.budget_tokens or self.used(messages) + more_tokens <= self.budget_tokens

    def wants_compaction(self, messages: Sequence[Message]) -> bool:
        """Whether it is nearly full, and with something that a summary can make smaller."""
        if not self.budget_tokens or self.used(messages) <= self.budget_tokens * limits.COMPACTION_SHARE:
            return False
        gain = sum(estimate(message) for message in messages if not message.is_summary_message)
        return can_be_summed_up(messages) and gain >= self.budget_tokens * limits.COMPACTION_GAIN_SHARE

    def overflowed(self, messages: Sequence[Message]) -> None:
        """The provider refused these as too long: whatever we thought, the window is smaller than that."""
        refused = int(self.used(messages) * limits.OVERFLOW_SHARE)
        self.budget_tokens = min(self.budget_tokens or refused, refused)
        self.forget()


def can_be_summed_up(messages: Sequence[Message]) -> bool:
    """Whether there is more than what people asked: a prompt alone would only be repeated."""
    return any(message.role in ("assistant", "tool") and not message.is_summary_message for message in messages)
