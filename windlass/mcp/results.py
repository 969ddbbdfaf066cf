"""What a server says, as ours: its tools and its results, bounded and made fit to be told (A32)."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, assert_never

import mcp_types as types
import msgspec
import structlog

from windlass import limits
from windlass.mcp.spec import ServerSpec
from windlass.wire.delegation import McpOutput, McpTool

logger = structlog.get_logger("windlass.mcp")


def tools_of(spec: ServerSpec, listed: Iterable[types.Tool]) -> tuple[McpTool, ...]:
    """The tools agents are told of, by name: at most MCP_TOOLS, each once. What is left out is logged."""
    found: dict[str, McpTool] = {}
    for tool in listed:
        if not any(fnmatchcase(tool.name, pattern) for pattern in spec.tools) or tool.name in found:
            continue
        if len(found) >= limits.MCP_TOOLS:
            logger.warning("an MCP server has more tools than are told", server=spec.name, told=limits.MCP_TOOLS)
            break
        problem = _problem(tool)
        if problem:
            logger.warning("a tool of an MCP server is left out", server=spec.name, tool=tool.name[:100], why=problem)
            continue
        found[tool.name] = _tool(spec, tool)
    return tuple(found[name] for name in sorted(found))


def _problem(tool: types.Tool) -> str:
    if not tool.name or len(tool.name) > limits.MCP_TOOL_NAME_CHARACTERS or not tool.name.isprintable():
        return "its name is empty, too long or not printable"
    if _is_deep(tool.input_schema, limits.TOOL_ARGUMENTS_DEPTH):
        return "its schema is nested too deep"
    if tool.input_schema.get("type", "object") != "object":
        return "its schema does not describe an object"
    try:
        size = len(msgspec.json.encode(tool.input_schema))
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        return "its schema cannot be written as JSON"
    return "its schema is too long" if size > limits.MCP_SCHEMA_BYTES else ""


def _tool(spec: ServerSpec, tool: types.Tool) -> McpTool:
    vouched = any(fnmatchcase(tool.name, pattern) for pattern in spec.read_only)
    said = tool.annotations is not None and tool.annotations.read_only_hint is True
    return McpTool(
        server=spec.name,
        name=tool.name,
        description=_encodable((tool.description or "")[: limits.MCP_DESCRIPTION_CHARACTERS]),
        schema={"type": "object", **tool.input_schema},
        # Both: a server must not be able to make its own tools ones that run beside others and in a plan.
        read_only=vouched and said,
    )


def _is_deep(value: Any, depth: int) -> bool:
    """Level by level, not by recursion: what is measured here must not be able to exhaust the stack."""
    level = [value]
    while level and depth:
        level = [inner for outer in level for inner in _inner(outer)]
        depth -= 1
    return bool(level)


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def output_of(result: types.CallToolResult) -> McpOutput:
    """Its text, its first image, and a note for everything else."""
    image: types.ImageContent | None = None
    texts = []
    for block in result.content:
        if image is None and isinstance(block, types.ImageContent) and _is_shown(block):
            image = block
        else:
            texts.append(_told(block))
    if not result.content and result.structured_content is not None:
        texts.append(msgspec.json.encode(result.structured_content).decode())
    text = _shortened("\n".join(texts))
    return McpOutput(
        content=text or ("(an image)" if image is not None else "(no output)"),
        is_error=bool(result.is_error),
        data=image.data if image is not None else "",
        mime_type=image.mime_type if image is not None else "",
    )


def _is_shown(image: types.ImageContent) -> bool:
    is_fit = image.data.isascii() and len(image.data) <= limits.MCP_IMAGE_BYTES
    return is_fit and image.mime_type in ("image/png", "image/jpeg", "image/gif", "image/webp")


def _told(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent():
            return f"[an image ({block.mime_type[:100]}, {len(block.data)} characters of base64) is not shown]"
        case types.AudioContent():
            return f"[a sound ({block.mime_type[:100]}, {len(block.data)} characters of base64) is not shown]"
        case types.ResourceLink():
            return f"[a resource: {block.name[:200]} at {str(block.uri)[:2000]}]"
        case types.EmbeddedResource():
            return _resource(block.resource)
        case _:
            assert_never(block)


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    where = str(resource.uri)[:2000]
    if isinstance(resource, types.TextResourceContents):
        return f"[the resource {where}]\n{resource.text}"
    return f"[the resource {where}, {len(resource.blob)} characters of base64, is not shown]"


def _shortened(text: str) -> str:
    """The beginning and the end: a run keeps what it is told on disk, and a model has a window."""
    limit = limits.TOOL_OUTPUT_CHARACTERS
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    return _encodable(text)


def _encodable(text: str) -> str:
    """Half a character (an escaped surrogate) can be read from JSON and not be written again."""
    return text.encode("utf-8", "replace").decode()
