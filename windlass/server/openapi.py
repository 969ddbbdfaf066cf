"""The OpenAPI document: made from the routes and the wire types, and never out of step with them.

It comes from an app that is never served: the framework would otherwise add documentation pages of its own, which load
their scripts from elsewhere.
"""

import functools
from typing import Any

from litestar import Litestar
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme

from windlass import __version__
from windlass.server import errands, markdown, mcp, permissions, questions, runs, search, sessions, stream, workspaces

API = (
    workspaces.router,
    sessions.router,
    search.router,
    errands.router,
    runs.router,
    permissions.router,
    questions.router,
    stream.router,
    mcp.router,
    markdown.router,
)
_OPERATIONS = ("get", "put", "post", "delete")


@functools.cache
def document() -> dict[str, Any]:
    """The document as plain JSON values. Shared: do not change it."""
    described = Litestar(
        route_handlers=list(API),
        openapi_config=OpenAPIConfig(
            title="Windlass",
            version=__version__,
            description="An agent server that many clients share.",
            use_handler_docstrings=True,
            components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
            security=[{"token": []}],
        ),
    )
    made: dict[str, Any] = described.openapi_schema.to_schema()
    made["components"]["schemas"]["ErrorBody"] = _ERROR_BODY
    for path in made["paths"].values():
        for method in _OPERATIONS:
            if method in path:
                _complete(method, path[method])
    return made


def _complete(method: str, operation: dict[str, Any]) -> None:
    """What is the same everywhere: the shape of an error, and who does it."""
    responses = {status: body for status, body in operation["responses"].items() if status < "400"}
    operation["responses"] = {**responses, "default": _ERROR}
    parameters = operation.setdefault("parameters", [])
    if method != "get" and not any(parameter["name"] == "client_id" for parameter in parameters):
        parameters.append(_CLIENT_ID)


_ERROR_BODY = {
    "type": "object",
    "title": "ErrorBody",
    "description": "`message` says what is wrong and what to do; `request_id` is in the server's log too.",
    "properties": {"message": {"type": "string"}, "request_id": {"type": "string"}},
    "required": ["message"],
}
_ERROR = {
    "description": "It was refused, or went wrong.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
}
_CLIENT_ID = {
    "name": "client_id",
    "in": "query",
    "description": "The client that does it: a UUID it made up. Recorded beside the token's name.",
    "schema": {"type": "string", "format": "uuid"},
    "required": False,
}
