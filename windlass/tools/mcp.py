"""Tools of MCP servers as an agent's own: each asks the owner of the run to make the call (`wire/delegation.py`)."""

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from windlass import limits
from windlass.tools.text import shown
from windlass.wire.delegation import CallMcpTool, McpTool, OwnerReply
from windlass.wire.execution import PermissionAsk
from windlass.wire.tools import ToolError, ToolOutput

logger = structlog.get_logger("windlass.tools")
NAME_CHARACTERS = 64  # what providers take as the name of a tool
Delegate = Callable[[CallMcpTool], Awaitable[OwnerReply]]


def mcp_tools(found: Sequence[McpTool], delegate: Delegate, taken: Collection[str]) -> "list[Mcp]":
    """A tool for each, except for those whose names are not theirs alone.

    All that share a name are left out: with one of them kept, a server could take another's place (A32).
    """
    tools = [Mcp(tool, delegate) for tool in found]
    often = Counter(tool.name for tool in tools)
    kept = []
    for tool in tools:
        if often[tool.name] > 1 or tool.name in taken:
            logger.warning(
                "a tool of an MCP server is left out: its name is taken", tool=tool.name, resource=tool.resource
            )
        else:
            kept.append(tool)
    return kept


def tool_name(server: str, tool: str) -> str:
    """What models call it: only letters, digits, - and _ are taken everywhere."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp_{server}_{tool}")[:NAME_CHARACTERS]


class Mcp:
    """One tool of one server. `resource`, with the arguments behind it, is what permissions and rules are about."""

    def __init__(self, tool: McpTool, delegate: Delegate) -> None:
        self.name = tool_name(tool.server, tool.name)
        self.description = tool.description or f"The tool {tool.name} of the MCP server {tool.server}."
        self.schema = tool.schema
        self.read_only = tool.read_only
        self.resource = f"{tool.server}/{tool.name}"
        self._tool = tool
        self._delegate = delegate

    def plan(self, arguments: dict[str, Any], tool_call_id: str) -> "McpPlan":
        request = CallMcpTool(self._tool.server, self._tool.name, arguments)
        ask = PermissionAsk(
            tool_call_id=tool_call_id,
            tool_name=self.name,
            action="call",
            description=f"Call {shown(self._tool.name)} of the MCP server {self._tool.server}, unconfined.",
            path="",
            resource=f"{self.resource} {_spelled(arguments)}",
            params={"server": request.server, "tool": request.tool, "arguments": request.arguments},
            confined=False,
        )
        return McpPlan(ask, request, self._delegate)


def _spelled(arguments: dict[str, Any]) -> str:
    """The arguments, always in one spelling: an answer for the session is for this very call and no other (I10)."""
    text = msgspec.json.encode(arguments, order="deterministic").decode()
    # Of long ones their digest: what was answered is remembered for as long as the session.
    return text if len(text) <= limits.MCP_RESOURCE_CHARACTERS else hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class McpPlan:
    ask: PermissionAsk
    request: CallMcpTool
    delegate: Delegate

    async def run(self) -> ToolOutput:
        reply = await self.delegate(self.request)
        if reply.error or reply.mcp_output is None:
            raise ToolError(reply.error or "The MCP server gave no answer.")
        output = reply.mcp_output
        return ToolOutput(output.content, output.is_error, data=output.data, mime_type=output.mime_type)
