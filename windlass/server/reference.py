"""The reference of the HTTP API as Markdown, from the same document as /openapi.json.

python -m windlass.server.reference > docs/http.md
"""

from collections.abc import Iterator
from typing import Any

from windlass.server import openapi

_INTRODUCTION = """# HTTP reference

Made from the routes by `python -m windlass.server.reference`; do not edit. A running server has the same at `/docs`,
and for machines at `/openapi.json`. Every route but `GET /v1/health` needs `Authorization: Bearer <token>`. Bodies are
JSON. An error is an [ErrorBody](#errorbody) with the fitting status."""


def reference() -> str:
    """The whole page."""
    document = openapi.document()
    return "\n".join([_INTRODUCTION, "", *_routes(document["paths"]), *_shapes(document["components"]["schemas"])])


def _routes(paths: dict[str, Any]) -> Iterator[str]:
    """The routes, under the headings the routers gave them, in their order."""
    by_heading: dict[str, list[str]] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            lines = by_heading.setdefault(operation["tags"][0], [])
            lines += _route(method, path, operation)
    for heading, lines in by_heading.items():
        yield f"## {heading}"
        yield ""
        yield from lines


def _route(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`"
    yield ""
    yield operation["description"]
    yield ""
    given = [parameter for parameter in operation["parameters"] if parameter["in"] != "path"]
    if given:
        names = ", ".join(f"`{parameter['name']}`" for parameter in given)
        yield f"- Query: {names}"
    if "requestBody" in operation:
        yield f"- Body: {_content(operation['requestBody'])}"
    for status, answer in operation["responses"].items():
        if status != "default":
            yield f"- {status}: {_content(answer)}"
    yield ""


def _content(holder: dict[str, Any]) -> str:
    content = holder.get("content") or {}
    schemas = [media["schema"] for media in content.values() if media.get("schema", {}).get("type") != "null"]
    return ", ".join(_kind(schema) for schema in schemas) or "nothing to read"


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words; a shape with a name links to it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(_kind(alternative) for alternative in alternatives)
    if "enum" in schema or "const" in schema:
        return ", ".join(f'`"{word}"`' for word in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items') or {})}"
    kind = schema.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _shapes(schemas: dict[str, Any]) -> Iterator[str]:
    """Every named shape, with its fields."""
    yield "## Shapes"
    yield ""
    for name, schema in sorted(schemas.items()):
        yield f"### {name}"
        yield ""
        if schema.get("description"):
            yield schema["description"]
            yield ""
        required = schema.get("required", [])
        for field, kind in schema.get("properties", {}).items():
            yield f"- `{field}`{'' if field in required else ' (optional)'}: {_kind(kind)}"
        yield ""


if __name__ == "__main__":
    print(reference(), end="")
