"""What a prompt tells the provider to do: a line of text that the server passes on and nobody else reads."""

import re

_STREAM = re.compile(rb"bench: tokens=(\d+) rate=(\d+) size=(\d+)")
_COMMAND = re.compile(rb"bench: bash \[([^\]\"\\]*)\]")
STAMP_CHARACTERS = 10  # "~" and nine digits: the time it was sent, in microseconds, modulo STAMP_MODULUS
STAMP_MODULUS = 10**9
STAMP = re.compile(rb"~(\d{9})")


def stream(tokens: int, rate: int, size: int = STAMP_CHARACTERS) -> str:
    """`tokens` tokens of `size` characters, `rate` a second (0: as fast as they are read); stamped if they fit."""
    return f"bench: tokens={tokens} rate={rate} size={size}"


def bash(command: str) -> str:
    """One call of the tool `bash`, then a word. No quotes, backslashes or `]`: the text is found inside JSON."""
    directive = f"bench: bash [{command}]"
    assert _COMMAND.fullmatch(directive.encode()), command
    return directive


def find_stream(body: bytes) -> tuple[int, int, int] | None:
    """tokens, rate and size of the newest prompt in a request."""
    match = _STREAM.match(body, max(0, body.rfind(b"bench: ")))
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def find_command(body: bytes) -> bytes | None:
    """The command the newest prompt asks for; None when there is none, or its result is in the request already."""
    position = max(0, body.rfind(b"bench: "))
    match = _COMMAND.match(body, position)
    return None if match is None or body.find(b'"role":"tool"', position) >= 0 else match[1]
