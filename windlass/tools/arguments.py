"""What a model may pass to a tool: one struct gives both the schema it is told and the check of what it sends."""

from typing import Any, TypeVar

import msgspec

from windlass.wire.tools import ToolError

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a struct, as one object: providers do not follow a `$ref` at the top, and some follow none."""
    _, components = msgspec.json.schema_components([arguments])
    schema: dict[str, Any] = _whole(components[arguments.__name__], components)
    return schema


def _whole(schema: Any, components: dict[str, Any]) -> Any:
    """The schema with each reference replaced by what it refers to. A struct cannot hold itself: no tool needs that."""
    if isinstance(schema, list):
        return [_whole(part, components) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(components[schema["$ref"].rpartition("/")[2]], components)
    named = schema.get("type") == "object" and "properties" in schema
    return {key: _whole(part, components) for key, part in schema.items() if not (named and key == "title")}


def read_arguments(raw: dict[str, Any], arguments: type[Arguments]) -> Arguments:
    """The arguments as a struct; a ToolError that names the field if they do not fit."""
    try:
        # Not strict: a small model that writes "10" means 10.
        return msgspec.convert(raw, arguments, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"The arguments do not fit: {error}.") from None
