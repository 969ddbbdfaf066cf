"""Routes: workspaces, the clients that hold them, and the server itself."""

import platform

from litestar import Response, Router, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody

from windlass import __version__
from windlass.engine.workspace import Workspace as OpenWorkspace
from windlass.errors import BadRequest, Conflict, Invalid
from windlass.limits import ID_CHARACTERS, TICKET_SECONDS
from windlass.server.services import Connection, Services, by_of, check_client_id, identity_of, services_of
from windlass.wire.http import (
    Control,
    CreateWorkspace,
    CurrentSession,
    Ticket,
    TicketRequest,
    Version,
    Workspace,
)


def _describe(services: Services, workspace: OpenWorkspace, client_id: str = "") -> Workspace:
    return Workspace(
        id=workspace.id,
        path=workspace.path,
        client_id=client_id,
        yolo=workspace.permissions.skip,
        debug=workspace.debug,
        version=__version__,
        config=services.describe_config(),
    )


@post("/workspaces", status_code=200)
async def create_workspace(state: State, request: Connection, data: JSONBody[CreateWorkspace]) -> Workspace:
    """Open a directory as a workspace, or join it; the client holds it until its first stream."""
    services = services_of(state)
    client_id = check_client_id(data.client_id)
    if not data.path:
        raise BadRequest("path is missing: the directory to open.")
    by = by_of(request)
    workspace = await services.registry.create(data.path, client_id, by, yolo=data.yolo, debug=data.debug)
    return _describe(services, workspace, client_id)


@get("/workspaces")
async def list_workspaces(state: State, all: FromQuery[str] = "") -> list[Workspace]:
    """The workspaces that are open; with `?all=1` also those that were, the one in which something happened last
    first."""
    services = services_of(state)
    if all == "1":
        return await _known(services)
    return [_describe(services, workspace) for workspace in services.registry.workspaces]


async def _known(services: Services) -> list[Workspace]:
    rows = await services.registry.known()
    # From here on without waiting: each is told once, as open or as closed.
    described = {workspace.id: _describe(services, workspace) for workspace in services.registry.workspaces}
    listed: list[Workspace] = []
    for row in rows:
        found = described.pop(row.id, None) or Workspace(id=row.id, path=row.path, closed=True)
        found.updated_at = int(row.last)
        listed.append(found)
    return [*described.values(), *listed]  # first those that were opened just now


@get("/workspaces/{workspace_id:str}")
async def get_workspace(state: State, workspace_id: FromPath[str]) -> Workspace:
    """An open workspace; 404 when it is not open."""
    services = services_of(state)
    return _describe(services, services.registry.get(workspace_id))


@delete("/workspaces/{workspace_id:str}", status_code=200)
async def release_workspace(state: State, request: Connection, workspace_id: FromPath[str]) -> None:
    """Let go of the workspace: this client's claim on it ends."""
    workspace = services_of(state).registry.get(workspace_id)
    workspace.attendance.release(check_client_id(request.query_params.get("client_id")))


@delete("/clients/{client_id:str}", status_code=200)
async def retire_client(state: State, client_id: FromPath[str]) -> None:
    """The client says goodbye for good: all of its claims end, and a late create from it is refused."""
    services_of(state).registry.retire(check_client_id(client_id))


@post("/workspaces/{workspace_id:str}/current-session", status_code=200)
async def set_current_session(
    state: State, request: Connection, workspace_id: FromPath[str], data: JSONBody[CurrentSession]
) -> None:
    """Say which session this client shows now ("" for none)."""
    workspace = services_of(state).registry.get(workspace_id)
    client_id = check_client_id(request.query_params.get("client_id"))
    if len(data.session_id) > ID_CHARACTERS:
        raise Invalid("session_id is too long.")
    workspace.look_at(client_id, data.session_id)


@get("/health")
async def health() -> Response[None]:
    """The server answers. Needs no credential, says nothing."""
    return Response(None, media_type="text/plain")


@get("/version")
async def version() -> Version:
    """Which server this is."""
    return Version(
        version=__version__,
        commit="",
        build_id=__version__,
        platform=f"{platform.system().lower()}/{platform.machine()}",
    )


@post("/control", status_code=200)
async def control(state: State, data: JSONBody[Control]) -> None:
    """Ask the server to leave if it is idle. Honoured by one that follows its clients; a resident one stays."""
    if not services_of(state).leave_if_idle():
        raise Conflict("The server stays: it is in use, or it was not started with --exit-when-idle.")


@post("/tickets", status_code=200)
async def create_ticket(state: State, request: Connection, data: JSONBody[TicketRequest | None] = None) -> Ticket:
    """A single-use ticket with which a browser gets in: open one of `urls`, or the path on an address of your own."""
    services = services_of(state)
    ticket = services.tickets.issue(identity_of(request), data.scope if data is not None else "operate")
    path = f"/?ticket={ticket}"
    urls = [address + path for address in services.addresses]
    return Ticket(ticket=ticket, path=path, expires_in_seconds=TICKET_SECONDS, urls=urls)


router = Router(
    path="/v1",
    route_handlers=[
        create_workspace,
        list_workspaces,
        get_workspace,
        release_workspace,
        retire_client,
        set_current_session,
        health,
        version,
        control,
        create_ticket,
    ],
    tags=["Workspaces"],
)
