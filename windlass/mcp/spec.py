"""What is known of one MCP server: how to reach it, its bounds, and what of it must never be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from windlass import limits

_SECRET_CHARACTERS = 6  # shorter values (`1`, `true`, `info`) are no secrets, and are parts of every other word


@dataclass(frozen=True, slots=True, repr=False)
class ServerSpec:
    """A `command`, whose standard input and output are the connection, or a `url` (streamable HTTP).

    `tools` are patterns of the tools agents are told of; `read_only` of those that the user vouches for.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ("*",)
    read_only: tuple[str, ...] = ()
    connect_seconds: float = limits.MCP_CONNECT_SECONDS
    call_seconds: float = limits.MCP_CALL_SECONDS
    disabled: bool = False

    def __repr__(self) -> str:
        return f"ServerSpec(name={self.name!r}, disabled={self.disabled!r})"  # all the rest may hold a key (A39)

    def redact(self, text: str) -> str:
        """The text without anything that the user configured and that could be a secret."""
        for secret in self._secrets():
            text = text.replace(secret, "***")
        return text

    def _secrets(self) -> list[str]:
        """Longest first: a part of a secret must not be taken out before the whole."""
        address = urlsplit(self.url)
        found = {*self.env.values(), *self.headers.values(), *self.command[1:], self.url, address.password or ""}
        found |= {value for _, value in parse_qsl(address.query)}
        # `Bearer abc` and `--token=abc`: the part that is the secret may be told without the word before it.
        found |= {part for text in [*found] for part in text.replace("=", " ").split(" ")}
        return sorted((text for text in found if len(text) >= _SECRET_CHARACTERS), key=len, reverse=True)
