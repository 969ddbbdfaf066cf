"""What the routes are given, and the small things they all need."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.datastructures import State

from windlass import limits
from windlass.engine.registry import Registry
from windlass.engine.workspace import Workspace
from windlass.errors import BadRequest
from windlass.ids import is_client_id
from windlass.server.page_files import PageFiles
from windlass.server.rendered import Rendered
from windlass.server.tickets import Tickets
from windlass.server.tokens import Identity, TokenStore
from windlass.server.turns import Turns
from windlass.wire.http import WorkspaceConfig
from windlass.wire.permissions import By

Connection = Request[Any, Any, Any]


class Services:
    """Everything behind the routes, made once by the composition root."""

    def __init__(
        self,
        registry: Registry,
        tokens: TokenStore,
        tickets: Tickets,
        describe_config: Callable[[], WorkspaceConfig],
        reload_config: Callable[[], None],
        leave_if_idle: Callable[[], bool],
    ) -> None:
        self.registry = registry
        self.tokens = tokens
        self.tickets = tickets
        self.describe_config = describe_config
        self.reload_config = reload_config
        self.leave_if_idle = leave_if_idle
        self.page = PageFiles()
        self.rendered = Rendered()
        self.searches = Turns(limits.SEARCHES_AT_ONCE, limits.SEARCHES_WAITING)
        self.timelines = Turns(limits.TIMELINES_AT_ONCE, limits.TIMELINES_WAITING)
        self.addresses: Sequence[str] = ()  # where browsers find us; known when the listeners are up


def services_of(state: State) -> Services:
    services: Services = state.services
    return services


def workspace_of(state: State, workspace_id: str) -> Workspace:
    """The open workspace with this id; NotFound when it is not open."""
    return services_of(state).registry.get(workspace_id)


def identity_of(request: Connection) -> Identity:
    identity: Identity = request.scope["windlass.identity"]  # type: ignore[typeddict-item]
    return identity


def by_of(request: Connection) -> By:
    """Who does this: the token's name, and the client if it says so (B46)."""
    client_id = request.query_params.get("client_id", "")
    if client_id:
        check_client_id(client_id)
    return By(identity_of(request).name, client_id)


def check_client_id(client_id: str | None) -> str:
    if not client_id:
        raise BadRequest("client_id is missing: a client makes up a UUID once and sends it with each request.")
    if not is_client_id(client_id):
        raise BadRequest("client_id is not a UUID such as 123e4567-e89b-12d3-a456-426614174000.")
    return client_id.lower()


def raw_json(content: bytes) -> Response[Any]:
    """An answer that is already encoded."""
    return Response(content=content, media_type="application/json")


def raw_list(bodies: list[bytes]) -> Response[Any]:
    return raw_json(b"[" + b",".join(bodies) + b"]")


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def whole_number(text: str | None, name: str, default: int, highest: int) -> int:
    """A query parameter that is a number of things."""
    if text is None or text == "":
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not 1 <= int(text) <= highest:
        raise BadRequest(f"{name} must be a whole number from 1 to {highest}.")
    return int(text)
