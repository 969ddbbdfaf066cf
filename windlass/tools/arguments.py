"""What a model may pass to a tool: one struct gives both the schema it is told and the check of what it sends."""

from typing import Any, TypeVar

import msgspec

from windlass.wire.tools import ToolError

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a flat struct, as one object: providers do not follow a `$ref` at the top."""
    _, components = msgspec.json.schema_components([arguments])
    schema: dict[str, Any] = dict(components[arguments.__name__])
    schema.pop("title", None)
    return schema


def read_arguments(raw: dict[str, Any], arguments: type[Arguments]) -> Arguments:
    """The arguments as a struct; a ToolError that names the field if they do not fit."""
    try:
        # Not strict: a small model that writes "10" means 10.
        return msgspec.convert(raw, arguments, strict=False)
    except msgspec.ValidationError as error:
        raise ToolError(f"The arguments do not fit: {error}.") from None
