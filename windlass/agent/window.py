"""Keeps a conversation within a model's context window by leaving the oldest steps out.

What is left out grows in large strides, not with every message: the provider's cache holds a prefix, and a prefix that
moved at each step would be paid for anew each time.
"""

import math

import msgspec

from windlass.wire.messages import Binary, ImageUrl, Message, Text, TextData

_BYTES_PER_TOKEN = 3  # on the safe side: prose has 4, code and most other alphabets fewer
_IMAGE_TOKENS = 1_500  # what providers charge for a large picture, whatever its bytes
_NOTE = "(Earlier parts of this conversation were left out to fit the model's context window.)"


def fit(messages: list[Message], budget_tokens: int) -> list[Message]:
    """The newest part of the conversation that fits, always with the newest user message. All of it if it fits."""
    units = _units(messages)
    sizes = [sum(estimate(message) for message in unit) for unit in units]
    excess = sum(sizes) - budget_tokens
    if excess <= 0 or budget_tokens <= 0:
        return messages
    stride = max(1, budget_tokens // 2)
    drop_at_least = math.ceil(excess / stride) * stride
    dropped, first = 0, 0
    # The newest unit stays, however large: without it there is nothing to answer, and the provider says what is wrong.
    while dropped < drop_at_least and first < len(units) - 1:
        dropped += sizes[first]
        first += 1
    kept = [message for unit in units[first:] for message in unit]
    return [_note(messages[0]), *_prompt_left_out(units, first), *kept]


def estimate(message: Message) -> int:
    """About how many tokens a message is."""
    tokens = 0
    for part in message.parts:
        if isinstance(part, ImageUrl) or (isinstance(part, Binary) and part.data.mime_type.startswith("image/")):
            tokens += _IMAGE_TOKENS
        else:
            tokens += estimate_bytes(msgspec.json.encode(part))
    return tokens


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


def _prompt_left_out(units: list[list[Message]], first: int) -> list[Message]:
    """The newest user message if it was left out: a long run must not forget what it was asked to do."""
    for number in range(len(units) - 1, -1, -1):
        if units[number][0].role == "user":
            return units[number] if number < first else []
    return []


def _note(like: Message) -> Message:
    return msgspec.structs.replace(like, role="user", parts=[Text(TextData(_NOTE))])
