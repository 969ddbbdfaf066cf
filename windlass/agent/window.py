"""Keeps a conversation within a model's context window by leaving the oldest steps out.

What is left out grows in large strides, not with every message: the provider's cache holds a prefix, and a prefix that
moved at each step would be paid for anew each time.
"""

import math

import msgspec

from windlass import limits
from windlass.wire.messages import Binary, ImageUrl, Message, Part, Text, TextData, ToolResult

_BYTES_PER_TOKEN = 3  # on the safe side: prose has 4, code and most other alphabets fewer
_IMAGE_TOKENS = 1_500  # what providers charge for a large picture, whatever its bytes
_NOTE = "(Earlier parts of this conversation were left out to fit the model's context window.)"


def fit(messages: list[Message], budget_tokens: int) -> list[Message]:
    """The newest part of the conversation that fits, always with the newest user message, and as much of what people
    said before as has room. All of it if it fits."""
    units = _units(messages)
    sizes = [sum(estimate(message) for message in unit) for unit in units]
    if sum(sizes) <= budget_tokens or budget_tokens <= 0:
        return messages
    room = int(budget_tokens * limits.PROMPTS_LEFT_OUT_SHARE)
    excess = sum(sizes) - (budget_tokens - room)
    stride = max(1, budget_tokens // 2)
    drop_at_least = math.ceil(excess / stride) * stride
    dropped, first = 0, 0
    # The newest unit stays, however large: without it there is nothing to answer, and the provider says what is wrong.
    while dropped < drop_at_least and first < len(units) - 1:
        dropped += sizes[first]
        first += 1
    kept = [message for unit in units[first:] for message in unit]
    return [_note(messages[0]), *_prompts_left_out(units, sizes, first, room), *kept]


def estimate(message: Message) -> int:
    """About how many tokens a message is."""
    return sum(map(estimate_part, message.parts))


def estimate_part(part: Part) -> int:
    match part:
        case ImageUrl():
            return _IMAGE_TOKENS
        case Binary() if part.data.mime_type.startswith("image/"):
            return _IMAGE_TOKENS
        case ToolResult() if part.data.data:
            return _IMAGE_TOKENS + estimate_bytes(part.data.content.encode())
        case _:
            return estimate_bytes(msgspec.json.encode(part))


def estimate_bytes(encoded: bytes) -> int:
    return len(encoded) // _BYTES_PER_TOKEN


def _units(messages: list[Message]) -> list[list[Message]]:
    """Pieces that can be left out whole: a message, or an answer together with the results of its calls."""
    units: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" and units:
            units[-1].append(message)
        else:
            units.append([message])
    return units


def _prompts_left_out(units: list[list[Message]], sizes: list[int], first: int, room: int) -> list[Message]:
    """What people said in the part that is left out, the newest as far as there is room: a long run must not forget
    what it was asked to do. Their very last words are kept in any case."""
    prompts = [number for number, unit in enumerate(units) if unit[0].role == "user"]
    kept: list[Message] = []
    for number in reversed(prompts):
        if number >= first:
            continue
        room -= sizes[number]
        if room < 0 and number != prompts[-1]:
            break
        kept.insert(0, units[number][0])
    return kept


def _note(like: Message) -> Message:
    return msgspec.structs.replace(like, role="user", parts=[Text(TextData(_NOTE))])
