"""The body of a request, made where it holds nobody up: a long conversation costs tens of milliseconds to write out."""

import asyncio
from collections.abc import Callable
from typing import assert_never

from windlass import limits
from windlass.wire.messages import (
    Binary,
    Finish,
    ImageUrl,
    Part,
    Reasoning,
    ShellCommand,
    Text,
    ToolCall,
    ToolResult,
)
from windlass.wire.model import ModelRequest

_MESSAGE_CHARACTERS = 200  # of JSON around what a message says


async def made(request: ModelRequest, encode: Callable[[], bytes]) -> bytes:
    """What `encode` makes of the request; in a thread when that is more than a moment's work."""
    return await asyncio.to_thread(encode) if _is_long(request) else encode()


def _is_long(request: ModelRequest) -> bool:
    left = limits.MODEL_BODY_CHARACTERS
    for message in request.messages:
        left -= _MESSAGE_CHARACTERS + sum(map(_characters, message.parts))
        if left < 0:
            return True  # without looking at the rest: this is asked on the loop
    return False


def _characters(part: Part) -> int:
    match part:
        case Text():
            return len(part.data.text)
        case Reasoning():
            return len(part.data.thinking) + len(part.data.signature)
        case ToolCall():
            return len(part.data.input)
        case ToolResult():
            return len(part.data.content) + len(part.data.data)
        case Binary():
            return len(part.data.data)
        case ImageUrl():
            return len(part.data.url)
        case ShellCommand():
            return len(part.data.command) + len(part.data.output)
        case Finish():
            return 0
        case _:
            assert_never(part)
