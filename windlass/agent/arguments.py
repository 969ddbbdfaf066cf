"""The arguments of a tool call: JSON text that a model wrote, read with bounds (A32)."""

import re
from typing import Any

import msgspec

from windlass import limits

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


class BadArguments(Exception):
    """The text cannot be used; the message tells the model why."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The object the text stands for. An empty text is an empty object: that is how calls without arguments come."""
    if not text.strip():
        return {}
    if len(text) > limits.TOOL_ARGUMENTS_BYTES or len(text.encode()) > limits.TOOL_ARGUMENTS_BYTES:
        raise BadArguments(f"The arguments are larger than {limits.TOOL_ARGUMENTS_BYTES} bytes. Send less at a time.")
    if _too_deep(text):
        raise BadArguments(f"The arguments are nested deeper than {limits.TOOL_ARGUMENTS_DEPTH} levels.")
    try:
        arguments = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadArguments(f"The arguments are not valid JSON: {error}.") from None
    if not isinstance(arguments, dict):
        raise BadArguments("The arguments must be a JSON object.")
    return arguments


def _too_deep(text: str) -> bool:
    """Counted before decoding: decoding is what a deep text attacks."""
    if text.count("[") + text.count("{") <= limits.TOOL_ARGUMENTS_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > limits.TOOL_ARGUMENTS_DEPTH:
            return True
    return False
