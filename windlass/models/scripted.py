"""The model that needs no key: it follows a script, or without one it is the demo of a first run.

Tests use it to decide what a model says and when, through the real run machinery. It has no state: what it answers
depends on the request alone, so a restart or a second client changes nothing.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import assert_never

import msgspec

from windlass.models.demo import demo_reply
from windlass.models.script import CallTool, End, Fail, Hang, Pause, Reply, Say, Script, Think, load_script
from windlass.wire.messages import FinishReason
from windlass.wire.model import (
    Chunk,
    FinishChunk,
    ModelError,
    ModelRequest,
    ReasoningChunk,
    Take,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from windlass.wire.runs import Usage

_WORDS = re.compile(r"\s*\S+\s*|\s+")


class ScriptedModel:
    """Streams what the script says, word by word. The file is read once, here; ValueError says what is wrong in it."""

    def __init__(self, script: Script | str | Path | None = None) -> None:
        self._script = load_script(script) if isinstance(script, str | Path) else script

    async def stream(self, request: ModelRequest, take: Take) -> None:
        """Hand on the reply to the newest user message; raise ModelError where the script says so."""
        words = 0
        async with aclosing(play(self._reply(request), request.call_number)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, FinishChunk):
                    # One word, one token: small numbers that a test can work out by hand.
                    take(UsageChunk(Usage(_words_in(request), words)))
                elif isinstance(chunk, TextChunk | ReasoningChunk):
                    words += 1
                take(chunk)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _reply(self, request: ModelRequest) -> Reply:
        if self._script is None:
            return demo_reply(request)
        prompt, answers = newest_prompt(request)
        # Retries leave no message behind, so the agent's own count of calls may be ahead of what the messages show.
        return self._script.reply(prompt, max(answers, request.call_number))


def newest_prompt(request: ModelRequest) -> tuple[str, int]:
    """The text of the newest user message, and how many assistant messages came after it."""
    answers = 0
    for message in reversed(request.messages):
        if message.role == "user":
            return message.text, answers
        answers += message.role == "assistant"
    return "", answers


async def play(reply: Reply, call_number: int = 0) -> AsyncGenerator[Chunk, None]:
    """Carry out the steps of a reply, at their pace. The last chunk is always a finish."""
    calls = 0
    reason: FinishReason | None = None
    for step in reply:
        match step:
            case Say():
                for word in _WORDS.findall(step.say):
                    await asyncio.sleep(_seconds_before_a_word(step))
                    yield TextChunk(word)
            case Think():
                for word in _WORDS.findall(step.think):
                    await asyncio.sleep(_seconds_before_a_word(step))
                    yield ReasoningChunk(word)
            case CallTool():
                text = step.input if isinstance(step.input, str) else msgspec.json.encode(step.input).decode()
                half = len(text) // 2
                # In two pieces, as real ones come: whoever forgets to join them is found out by every test.
                yield ToolCallChunk(calls, text[:half], id=step.id or f"call_{call_number}_{calls}", name=step.tool)
                await asyncio.sleep(0)
                yield ToolCallChunk(calls, text[half:])
                calls += 1
            case Pause():
                await asyncio.sleep(step.pause_ms / 1000)
            case Fail():
                raise ModelError(step.error, retryable=step.retryable, retry_after=step.retry_after)
            case End():
                reason = step.finish
                break
            case Hang():
                await asyncio.get_running_loop().create_future()
            case _:
                assert_never(step)
    yield FinishChunk(reason or ("tool_use" if calls else "end_turn"))


def _seconds_before_a_word(step: Say | Think) -> float:
    """Zero still lets the loop go round: a long text must not keep everyone else waiting."""
    if step.delay_ms > 0:
        return step.delay_ms / 1000
    return 1 / step.words_per_second if step.words_per_second > 0 else 0.0


def _words_in(request: ModelRequest) -> int:
    return sum(len(message.text.split()) for message in request.messages)
