"""MCP servers as clients see them: in which state each one is."""

from typing import Literal

import msgspec

McpStateName = Literal["disabled", "starting", "connected", "error", "stopped"]


class McpState(msgspec.Struct, frozen=True):
    """`stopped`: not needed yet, or not any more. `error` says what is wrong and what to do; it holds no secret."""

    name: str
    state: McpStateName
    error: str = ""
    tool_count: int = 0
