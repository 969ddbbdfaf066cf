"""What an agent is made of: its model, its tools, its bounds. Built once by whoever composes the process."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from windlass import limits
from windlass.agent.prompt import system_prompt
from windlass.wire.execution import Events, RunSpec
from windlass.wire.model import Model
from windlass.wire.runs import Usage
from windlass.wire.tools import Tool

ToolFactory = Callable[[RunSpec, Events], Sequence[Tool]]  # the tools of one run: they know its workspace and owner
PromptBuilder = Callable[[str, Sequence[str], bool], str]  # (workspace path, names of the tools, plan) -> system prompt


@dataclass(frozen=True)
class Prices:
    """Per million tokens, in whatever currency the user counts."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    def cost(self, usage: Usage) -> float:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        plain = max(0, usage.prompt_tokens - read - written)
        prompt = plain * self.input + read * self.cache_read + written * self.cache_write
        return (prompt + usage.completion_tokens * self.output) / 1_000_000


@dataclass(frozen=True)
class SmallModel:
    """A quick, cheap model for what is not the work itself."""

    model: Model
    name: str
    prices: Prices = Prices()


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """`context_window` and `default_max_tokens` in tokens; 0 means unknown, then the provider decides.

    `max_tokens` and `max_cost` are for a whole run; 0: no limit. `max_seconds` 0: RUN_SECONDS. `images`: whether the
    model can see. `small` finds titles; None: the first line of the prompt is one.
    """

    model: Model
    model_name: str
    provider_name: str
    tools: ToolFactory
    new_message_id: Callable[[], str]
    prompt: PromptBuilder = system_prompt
    max_steps: int = limits.RUN_STEPS
    max_seconds: float = 0.0
    max_tokens: int = 0
    max_cost: float = 0.0
    context_window: int = 0
    default_max_tokens: int = 0
    images: bool = True
    prices: Prices = Prices()
    small: SmallModel | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep  # between retries; a simulation brings its own
    jitter: random.Random = field(default_factory=random.Random)
