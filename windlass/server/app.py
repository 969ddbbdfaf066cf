"""The routes as one ASGI app, and how what they raise becomes an answer."""

from copy import copy
from functools import cache
from typing import Any

import structlog
from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin

from windlass.errors import TooLarge, TooMany, TooSlow, WindlassError
from windlass.server import openapi, pages
from windlass.server.bodies import JsonRequest
from windlass.server.services import Connection, Services
from windlass.wire.http import ErrorBody

logger = structlog.get_logger("windlass.http")


def create_app(services: Services) -> Litestar:
    """Every route there is. The security test walks this app's router, so a route without its row there fails it."""
    app = copy(routes())
    app.state = State({"services": services})
    return app


@cache
def routes() -> Litestar:
    """The app without services, the same each time: reading sixty signatures takes longer than all else of a start.

    Apps that are copied from it share its router. A request finds the services of the app that it came to.
    """
    return _MsgspecOnly(
        route_handlers=[
            *openapi.API,
            pages.front_page,
            pages.page_file,
            pages.kept_page_file,
            pages.docs_page,
            pages.openapi_document,
        ],
        request_class=JsonRequest,
        exception_handlers={
            WindlassError: _refused,
            ValidationException: _invalid,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
        openapi_config=None,  # it would add pages that load from elsewhere; the document is `openapi.document()`
        # The door bounds bodies; the framework's own limit would answer in another shape.
        request_max_body_size=None,
        logging_config=None,
    )


class _MsgspecOnly(Litestar):
    """Litestar loads its plug-ins for every type system it finds installed. Ours is msgspec; pydantic, which only the
    MCP library needs, would cost each start a fifth of its time and a seventh of its memory."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


def _answer(status: int, message: str, headers: dict[str, str] | None = None, request_id: str = "") -> Response[Any]:
    return Response(
        ErrorBody(message, request_id), status_code=status, media_type="application/json", headers=headers or {}
    )


def _refused(request: Connection, error: WindlassError) -> Response[Any]:
    headers = {"retry-after": str(error.retry_after)} if isinstance(error, TooMany) else {}
    if isinstance(error, TooLarge | TooSlow):
        headers["connection"] = "close"  # so that nothing more of the body is read
    request_id = _request_id(request) if error.status >= 500 else ""
    return _answer(error.status, error.message, headers, request_id)


def _invalid(request: Connection, error: ValidationException) -> Response[Any]:
    """A parameter that does not fit, or a body that is not there; one that is there was judged when it was read."""
    problems = [problem for problem in (error.extra or []) if isinstance(problem, dict)]
    key, text = (str(problems[0].get(name, "")) for name in ("key", "message")) if problems else ("", "")
    if "data" in (key, text.strip("'")):
        return _answer(400, "The body is missing: send JSON. See /docs for what it should look like.")
    if not key:
        return _answer(400, "The request is malformed. See /docs for what it should look like.")
    return _answer(400, f"{key}: {text}.".replace("..", "."))


def _http_error(request: Connection, error: HTTPException) -> Response[Any]:
    """The framework's own refusals, in our shape and without its details."""
    message = _FRAMEWORK.get(error.status_code)
    if message is None:
        message = "The body is not valid JSON." if error.status_code < 500 else "Something went wrong."
    return _answer(error.status_code, message)


_FRAMEWORK = {
    404: "There is nothing at this address. See /docs for what there is.",
    405: "This address does not take that method. See /docs.",
}


def _unexpected(request: Connection, error: Exception) -> Response[Any]:
    """The border of a request: whatever was not foreseen is logged whole and told as an id only (A40)."""
    request_id = _request_id(request)
    logger.error("unexpected error", exc_info=error, request_id=request_id)
    message = f"Something went wrong in the server. Its log has the details under the request id {request_id}."
    return _answer(500, message, request_id=request_id)


def _request_id(request: Connection) -> str:
    return str(request.scope.get("windlass.request_id", ""))
